// SPDX-License-Identifier: Apache-2.0
// Removes an ended job from a state directory's database, for good.
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::registry {

// Removes the job with its twins, attempts, events and checkpoints; returns the ids that are gone. Remotes drop their
// copies as those of any removed checkpoint. The money it cost since `month_begins` still counts for budgets. busy while
// the job, or one of its twins, runs or has something left on a host; usage when one of its checkpoints is pinned.
[[nodiscard]] Result<std::vector<JobId>> forget_job(const os::Path& state_directory, const JobId& id,
                                                    WallTime month_begins, WallTime now);

}  // namespace gridctl::registry
