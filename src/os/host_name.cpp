// SPDX-License-Identifier: Apache-2.0
#include "os/host_name.hpp"

#include <unistd.h>

#include <array>

namespace gridctl::os {

std::string host_name() {
  std::array<char, 256> name{};  // HOST_NAME_MAX is 64 on Linux, 255 in POSIX
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

unsigned user_id() { return ::getuid(); }

}  // namespace gridctl::os
