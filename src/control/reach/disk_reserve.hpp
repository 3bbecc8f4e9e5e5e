// SPDX-License-Identifier: Apache-2.0
// The part of our disk that hosts may not fill.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Free bytes that stay free: the larger of 1 GiB and a twentieth of the disk, but never more than a quarter of it.
[[nodiscard]] std::uint64_t disk_reserve(const os::DiskSpace& space);
// no_space when `bytes` more would go below the reserve. `folder` need not exist yet.
[[nodiscard]] Result<void> check_room(const os::Path& folder, std::uint64_t bytes);

}  // namespace gridctl::control
