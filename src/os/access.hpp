// SPDX-License-Identifier: Apache-2.0
// When files were last read.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::os {

// Returns the time of the last access; nullopt: the file cannot be asked. File systems may keep it only roughly; terminals
// keep it to eight seconds.
[[nodiscard]] std::optional<WallTime> accessed_at(const Path& path);

}  // namespace gridctl::os
