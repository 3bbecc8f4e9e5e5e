// SPDX-License-Identifier: Apache-2.0
// Keeps a job's secrets between submit and its end: files of mode 0600 in the state directory, never in the database.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::control {

[[nodiscard]] Result<void> write_secrets(const os::Path& directory, const std::map<std::string, std::string>& secrets);
// Reads the secrets. The not_found error names the missing one.
[[nodiscard]] Result<std::map<std::string, std::string>> read_secrets(const os::Path& directory,
                                                                      const std::vector<std::string>& names);

// Reads all secrets that exist; none if there is no such directory.
[[nodiscard]] Result<std::map<std::string, std::string>> read_secrets(const os::Path& directory);

}  // namespace gridctl::control
