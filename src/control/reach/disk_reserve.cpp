// SPDX-License-Identifier: Apache-2.0
#include "control/reach/disk_reserve.hpp"

#include <algorithm>
#include <filesystem>

#include "base/bytes.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_reserve_bytes = 1ull << 30;
constexpr std::uint64_t k_reserve_share = 20;  // a twentieth
constexpr std::uint64_t k_reserve_most = 4;    // of a small disk, a quarter
}  // namespace

std::uint64_t disk_reserve(const os::DiskSpace& space) {
  return std::min(std::max(k_reserve_bytes, space.total / k_reserve_share), space.total / k_reserve_most);
}

Result<void> check_room(const os::Path& folder, std::uint64_t bytes) {
  os::Path there = std::filesystem::absolute(folder);
  while (!os::exists(there) && there.has_parent_path() && there != there.parent_path()) there = there.parent_path();
  TRY_ASSIGN(const os::DiskSpace space, os::disk_space(there));
  const std::uint64_t reserve = disk_reserve(space);
  if (space.free >= reserve && space.free - reserve >= bytes) return {};
  return make_error(Code::no_space, "no room for " + format_size(bytes) + " in " + there.string() + ": " +
                                        format_size(space.free) + " are free, and " + format_size(reserve) +
                                        " of them are kept for you");
}

}  // namespace gridctl::control
