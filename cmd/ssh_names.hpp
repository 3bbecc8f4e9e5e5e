// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

// Holds the names of single hosts in the text of an ssh configuration, in its order, and the files that it includes.
// Patterns, and the usual services that run no jobs (github.com…), are left out. Pure.
struct SshNames {
  std::vector<std::string> hosts;
  std::vector<std::string> includes;
};
[[nodiscard]] SshNames names_in(std::string_view text);
// Returns the names in a file and in the files that it includes, or nothing if there is no file.
[[nodiscard]] Result<std::vector<std::string>> ssh_names(const os::Path& config);

}  // namespace gridctl::cmd
