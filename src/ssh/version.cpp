// SPDX-License-Identifier: Apache-2.0
#include "ssh/version.hpp"

#include <libssh2.h>

namespace gridctl::ssh {

std::string libssh2_in_use() {
  const char* version = ::libssh2_version(0);
  return version == nullptr ? std::string{} : version;
}

}  // namespace gridctl::ssh
