// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <gtest/gtest.h>

#include <set>

#include "os/random.hpp"

namespace gridctl::os::clock_test {
namespace {

TEST(Clock, NeverGoesBackwards) {
  BootTime before = system_clock().boot();
  for (int i = 0; i < 1000; ++i) {
    const BootTime now = system_clock().boot();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Clock, PausesAtLeastAsLongAsAsked) {
  const BootTime before = system_clock().boot();
  pause_for(std::chrono::milliseconds{5});
  EXPECT_GE(system_clock().boot() - before, std::chrono::milliseconds{5});
}

TEST(Random, IdsHaveTheirLengthAndAlphabet) {
  const std::string id = random_id(1000);
  EXPECT_EQ(id.size(), 1000u);
  EXPECT_EQ(id.find_first_not_of("abcdefghijkmnpqrstuvwxyz23456789"), std::string::npos);
  EXPECT_GT(std::set<char>(id.begin(), id.end()).size(), 28u);
}

TEST(Random, DoesNotRepeatItself) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(random_u64()).second);
}

}  // namespace
}  // namespace gridctl::os::clock_test
