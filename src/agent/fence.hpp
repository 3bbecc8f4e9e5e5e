// SPDX-License-Identifier: Apache-2.0
// Stores the highest epoch of a job that this host accepted or refused. A refusal is a promise because it is on disk
// first.
#pragma once

#include "agent/attempt_dir.hpp"

namespace gridctl::agent {

// Returns 0 if the job was never seen. A fence that cannot be read is an error, never 0.
[[nodiscard]] Result<Epoch> read_fence(const JobDir& job);

// The fence is on disk when this returns, whatever happens next. REQUIRES: the job's lock; a fence only rises.
[[nodiscard]] Result<void> write_fence(const JobDir& job, Epoch epoch);

}  // namespace gridctl::agent
