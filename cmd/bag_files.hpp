// SPDX-License-Identifier: Apache-2.0
// Files that the tasks of a bag have left (`outputs`).
#pragma once

#include <optional>
#include <string>

#include "cmd/context.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// Writes those of the tasks named, or of all, below the directory, which is empty.
[[nodiscard]] Result<int> pull_task_files(Context& context, const registry::Job& job, const std::optional<std::string>& tasks,
                                          const os::Path& directory);

}  // namespace gridctl::cmd
