// SPDX-License-Identifier: Apache-2.0
// Judges whether the newest restored attempt of a job continued exactly, from the output or $GRIDCTL_METRICS of its
// attempts. Reads files: for threads of an os::Executor, and commands.
#pragma once

#include <optional>
#include <vector>

#include "control/reach/job_folders.hpp"
#include "job/exactness.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

struct ExactnessFound {
  AttemptNumber attempt;  // the restored one
  CheckpointSeq from;
  job::ExactnessVerdict verdict;
};
// Returns nullopt if none of the attempts (ascending) was restored. unsupported if outputs cannot be read.
[[nodiscard]] Result<std::optional<ExactnessFound>> find_exactness(JobFolders& folders, const JobId& job,
                                                                   const std::vector<registry::AttemptRecord>& attempts);

}  // namespace gridctl::control
