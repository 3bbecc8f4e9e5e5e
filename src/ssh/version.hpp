// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gridctl::ssh {

[[nodiscard]] std::string libssh2_in_use();  // "1.10.0": of the library that was loaded, not of the one built with

}  // namespace gridctl::ssh
