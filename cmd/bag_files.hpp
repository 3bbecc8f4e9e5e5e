// SPDX-License-Identifier: Apache-2.0
// Fetches files that the tasks of a bag have left (`outputs`).
#pragma once

#include <optional>
#include <string>

#include "cmd/context.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// Writes the files of the named tasks, or of all, below the directory, which is empty.
[[nodiscard]] Result<int> pull_task_files(Context& context, const registry::Job& job, const std::optional<std::string>& tasks,
                                          const os::Path& directory);

}  // namespace gridctl::cmd
