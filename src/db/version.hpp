// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gridctl::db {

[[nodiscard]] std::string sqlite_in_use();  // "3.40.1": of the library that was loaded, not of the one built with

}  // namespace gridctl::db
