// SPDX-License-Identifier: Apache-2.0
// The highest epoch of a job that this host accepted or refused. A refusal is a promise because it is on disk first.
#pragma once

#include "agent/attempt_dir.hpp"

namespace gridctl::agent {

// 0 when the job was never seen. A fence that cannot be read is an error, never 0.
[[nodiscard]] Result<Epoch> read_fence(const JobDir& job);

// On return the fence on disk is at least `epoch`. REQUIRES: the job's lock.
[[nodiscard]] Result<Epoch> raise_fence(const JobDir& job, Epoch epoch);

}  // namespace gridctl::agent
