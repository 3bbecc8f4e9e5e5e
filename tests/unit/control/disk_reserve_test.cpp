// SPDX-License-Identifier: Apache-2.0
// Red team: a host that wants to fill our disk.
#include "control/reach/disk_reserve.hpp"

#include <gtest/gtest.h>

#include "control/reach/host_chunks.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::disk_reserve_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

constexpr std::uint64_t k_gib = 1ull << 30;

TEST(HostFillingTheDisk, CannotHaveWhatIsKeptFree) {
  EXPECT_EQ(disk_reserve({0, 10 * k_gib}), k_gib);
  EXPECT_EQ(disk_reserve({0, 1000 * k_gib}), 50 * k_gib);
  EXPECT_EQ(disk_reserve({0, 2 * k_gib}), k_gib / 2);
  const gridctl::testing::TempDir folder;
  const os::DiskSpace space = os::disk_space(folder.path()).value();
  EXPECT_THAT(check_room(folder / "not/there/yet", space.free + 1), FailsWith(Code::no_space));
  EXPECT_THAT(check_room(folder.path(), UINT64_MAX), FailsWith(Code::no_space));
  if (space.free > disk_reserve(space) + 4096) {
    EXPECT_THAT(check_room(folder.path(), 4096), IsOk());
  }
}

TEST(HostFillingTheDisk, CannotGoOnSendingWhatIsNoCheckpoint) {
  HostChunks host;
  BootTime now{1};
  EXPECT_THAT(host.may_send(k_gib, now), IsOk());
  host.wasted(k_gib, now);
  EXPECT_THAT(host.may_send(k_gib, now), IsOk());
  host.wasted(1, now);
  EXPECT_THAT(host.may_send(k_gib, now), FailsWith(Code::refused));
  now = now + std::chrono::hours{25};
  EXPECT_THAT(host.may_send(k_gib, now), IsOk());
}

TEST(HostFillingTheDisk, CannotFillOurMemoryWithNamesOfChunks) {
  HostChunks host;
  Digest digest;
  for (std::uint32_t i = 0; i < 1'100'000; ++i) {
    for (std::size_t at = 0; at < 4; ++at) digest.bytes[at] = static_cast<std::byte>(i >> (8 * at));
    host.add(digest);
  }
  EXPECT_TRUE(host.has(digest));
  digest.bytes[3] = digest.bytes[2] = std::byte{0};
  EXPECT_FALSE(host.has(digest));  // forgotten
}

}  // namespace
}  // namespace gridctl::control::disk_reserve_test
