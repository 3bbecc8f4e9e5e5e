// SPDX-License-Identifier: Apache-2.0
#include "ui/human.hpp"

#include <gtest/gtest.h>

namespace gridctl::ui::human_test {
namespace {

constexpr std::int64_t k_second = 1000;
const WallTime k_now{1'800'000'000'000};
WallTime before(std::int64_t seconds) { return {k_now.ms - seconds * k_second}; }

TEST(Human, SaysAgesInTheLargestUnit) {
  EXPECT_EQ(age(before(0), k_now), "just now");
  EXPECT_EQ(age(before(42), k_now), "42s ago");
  EXPECT_EQ(age(before(3 * 3600 + 5), k_now), "3h ago");
  EXPECT_EQ(age(before(5 * 86400), k_now), "5d ago");
  EXPECT_EQ(age(before(-120), k_now), "in 2m");
  EXPECT_EQ(age(std::nullopt, k_now), "-");
}

TEST(Human, SaysHowLongSomethingTookOrHasTakenSoFar) {
  EXPECT_EQ(span(before(192), std::nullopt, k_now), "3m12s");
  EXPECT_EQ(span(before(10), before(10), k_now), "0s");
  EXPECT_EQ(span(std::nullopt, std::nullopt, k_now), "-");
}

TEST(Human, ShowsSmallSumsWithEnoughDigits) {
  EXPECT_EQ(money(1.25), "$1.25");
  EXPECT_EQ(money(0.004), "$0.0040");
  EXPECT_EQ(money(0), "-");
  EXPECT_EQ(money(0, false), "$0.00");
}

TEST(Human, GroupsEqualGpus) {
  Inventory inventory;
  Gpu gpu;
  gpu.name = "NVIDIA GeForce RTX 4090";
  gpu.memory_bytes = 24ull << 30;
  inventory.gpus = {gpu, gpu};
  EXPECT_EQ(gpus(inventory), "2x RTX 4090 24 GiB");
  gpu.name = "AMD Instinct MI300X";
  gpu.memory_bytes = 192ull << 30;
  inventory.gpus.push_back(gpu);
  EXPECT_EQ(gpus(inventory), "2x RTX 4090 24 GiB, 1x Instinct MI300X 192 GiB");
  EXPECT_EQ(gpus({}), "-");
}

TEST(Human, LeavesOutNeedlessDigits) {
  EXPECT_EQ(number(4), "4");
  EXPECT_EQ(number(0.5), "0.5");
}

}  // namespace
}  // namespace gridctl::ui::human_test
