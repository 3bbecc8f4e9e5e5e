// SPDX-License-Identifier: Apache-2.0
#include "db/version.hpp"

#include <sqlite3.h>

namespace gridctl::db {

std::string sqlite_in_use() { return ::sqlite3_libversion(); }

}  // namespace gridctl::db
