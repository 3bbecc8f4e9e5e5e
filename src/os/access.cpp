// SPDX-License-Identifier: Apache-2.0
#include "os/access.hpp"

#include <sys/stat.h>

namespace gridctl::os {

std::optional<WallTime> accessed_at(const Path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return WallTime{static_cast<std::int64_t>(info.st_atim.tv_sec) * 1000};
}

}  // namespace gridctl::os
