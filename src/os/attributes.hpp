// SPDX-License-Identifier: Apache-2.0
// Reads and sets extended attributes of directories: marks that programs do not see and that a copy does not have.
#pragma once

#include <string>

#include "os/files.hpp"

namespace gridctl::os {

// Sets an attribute without a value. Returns false where the file system has no such attributes.
bool set_attribute(const Path& directory, const std::string& name);
[[nodiscard]] bool has_attribute(int fd, const std::string& name);

}  // namespace gridctl::os
