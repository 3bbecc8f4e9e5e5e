// SPDX-License-Identifier: Apache-2.0
#include "os/attributes.hpp"

#include <sys/xattr.h>

namespace gridctl::os {

bool set_attribute(const Path& directory, const std::string& name) { return ::setxattr(directory.c_str(), name.c_str(), "", 0, 0) == 0; }

bool has_attribute(int fd, const std::string& name) { return ::fgetxattr(fd, name.c_str(), nullptr, 0) >= 0; }

}  // namespace gridctl::os
