// SPDX-License-Identifier: Apache-2.0
// Inside os only: errno of a call on a path as an Error.
#pragma once

#include <string>

#include "base/error.hpp"
#include "os/files.hpp"

namespace gridctl::os {

// "VERB 'PATH': strerror"; ENOENT and ENOTDIR give not_found, EEXIST gives exists, the rest as errno_error.
[[nodiscard]] Error path_error(int err, const std::string& verb, const Path& path);

}  // namespace gridctl::os
