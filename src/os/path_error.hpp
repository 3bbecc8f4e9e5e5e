// SPDX-License-Identifier: Apache-2.0
// Turns errno of a call on a path into an Error. For os only.
#pragma once

#include <string>

#include "base/error.hpp"
#include "os/files.hpp"

namespace gridctl::os {

// Returns "VERB 'PATH': strerror"; ENOENT and ENOTDIR give not_found, EEXIST gives exists, the rest follows
// errno_error.
[[nodiscard]] Error path_error(int err, const std::string& verb, const Path& path);

}  // namespace gridctl::os
