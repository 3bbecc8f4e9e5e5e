// SPDX-License-Identifier: Apache-2.0
// The highest epoch of a job that this host accepted or refused. A refusal is a promise because it is on disk first.
#pragma once

#include "agent/attempt_dir.hpp"

namespace gridctl::agent {

// 0 when the job was never seen. A fence that cannot be read is an error, never 0.
[[nodiscard]] Result<Epoch> read_fence(const JobDir& job);

// On return the fence is on disk, whatever happens next. REQUIRES: the job's lock; a fence only rises.
[[nodiscard]] Result<void> write_fence(const JobDir& job, Epoch epoch);

}  // namespace gridctl::agent
