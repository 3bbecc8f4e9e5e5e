// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

// Files may be copied there: it does not exist, is empty, or holds what an earlier copy left unfinished. `exists`
// otherwise; `what` is copied "into a new directory only".
[[nodiscard]] Result<void> check_empty(const os::Path& directory, std::string_view what);

}  // namespace gridctl::cmd
