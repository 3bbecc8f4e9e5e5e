// SPDX-License-Identifier: Apache-2.0
#include "control/follow/allowances.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gridctl::control::allowances_dealing_test {
namespace {
using namespace std::chrono_literals;

BootTime at(double s) { return {static_cast<std::int64_t>(s * 1e9)}; }

TEST(Slices, OneAloneIsDealtAll) {
  EXPECT_EQ(slice_of(10, 0, 5, 5, 24h), Duration(2h));
  EXPECT_EQ(slice_of(1000, 0, 5, 5, 24h), Duration(24h)) << "no longer than its lease lasts";
  EXPECT_EQ(slice_of(10, 0, 0, 5, 24h), Duration(24h)) << "what costs nothing needs none";
}

TEST(Slices, OfSeveralLastEquallyLong) {
  EXPECT_EQ(slice_of(12, 0, 1, 3, 24h), Duration(4h));
  EXPECT_EQ(slice_of(12, 0, 2, 3, 24h), Duration(4h));
}

TEST(Slices, WhatOthersHoldIsNotDealtTwice) {
  EXPECT_EQ(slice_of(12, 9, 2, 3, 24h), Duration(1h + 30min));
  EXPECT_EQ(slice_of(12, 13, 2, 3, 24h), Duration(0h));
  EXPECT_EQ(slice_of(-1, 0, 2, 3, 24h), Duration(0h));
}

TEST(Dealing, ASliceIsHeldUntilItsHostSaysThatItHoldsLess) {
  Dealing dealing;
  dealing.tell("a", 3600, at(100));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 100);
  dealing.tell("a", 3600, at(50));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 100) << "the message may be lost";
  dealing.reported("a", at(100));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 100);
  dealing.reported("a", at(50));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 50);
  dealing.reported("a", at(20));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 50) << "it says so before what it was told has reached it";
  EXPECT_DOUBLE_EQ(dealing.held("a", at(60)), 0);
  EXPECT_DOUBLE_EQ(dealing.held("b", at(0)), 0);
}

TEST(Dealing, WhatRanBeforeUsMayHoldAllUntilItsLeaseEnds) {
  Dealing dealing;
  dealing.assume("a", 3600, at(100));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 100);
  dealing.assume("a", 3600, at(900));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 100) << "assumed once";
  dealing.tell("a", 3600, at(10));
  dealing.reported("a", at(10));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 10);
}

TEST(Dealing, WhatRanBeforeUsIsBelievedWhatItSays) {
  Dealing dealing;
  dealing.assume("a", 3600, at(100));
  EXPECT_FALSE(dealing.known_left("a", at(0))) << "nobody has told it anything, and it has not told us";
  dealing.reported("a", at(30));
  EXPECT_DOUBLE_EQ(dealing.held("a", at(0)), 30);
  EXPECT_EQ(dealing.known_left("a", at(10)), Duration(20s));
  EXPECT_EQ(dealing.known_left("a", at(50)), Duration{});
  dealing.assume("b", 3600, at(100));
  dealing.reported("b", std::nullopt);
  EXPECT_DOUBLE_EQ(dealing.held("b", at(0)), 100) << "it has no limit but its lease";
  EXPECT_EQ(dealing.known_left("b", at(0)), Duration(100s));
  EXPECT_FALSE(dealing.known_left("c", at(0)));
}

// Hosts that come, fall silent, miss messages and come back never hold more than the budget together, whatever the order.
TEST(Dealing, SlicesNeverSumAboveTheBudget) {
  constexpr unsigned k_seeds = 200;
  double used = 0;  // shares of the budget
  for (unsigned seed = 1; seed <= k_seeds; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
    struct Host {
      double usd_per_hour;
      double until;  // as the host knows it
      bool runs = true;
    };
    const double budget = 100;
    double spent = 0, now = 0;
    Dealing dealing;
    std::vector<Host> hosts;
    for (int round = 0; round < 300; ++round) {
      if (hosts.size() < 8 && chance(0.1)) hosts.push_back({std::uniform_real_distribution<>(300, 9000)(random), now});
      double of_all = 0;
      for (const Host& host : hosts) of_all += host.runs ? host.usd_per_hour : 0;
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        Host& host = hosts[i];
        if (!host.runs || chance(0.4)) continue;  // nobody reaches it
        double held = 0;
        for (std::size_t other = 0; other < hosts.size(); ++other)
          if (other != i) held += dealing.held(std::to_string(other), at(now));
        const Duration slice = slice_of(budget - spent, held, host.usd_per_hour, of_all, 1h);
        dealing.tell(std::to_string(i), host.usd_per_hour, at(now) + slice);
        if (chance(0.3)) continue;  // the message is lost
        host.until = now + seconds(slice);
        if (!chance(0.3)) dealing.reported(std::to_string(i), at(host.until));
      }
      const double step = std::uniform_real_distribution<>(0, 2)(random);
      for (Host& host : hosts) {
        if (!host.runs) continue;
        const double ran = std::max(std::min(step, host.until - now), 0.0);
        spent += host.usd_per_hour * ran / 3600;
        if (host.until < now + step) host.runs = false;
      }
      now += step;
      ASSERT_LE(spent, budget + 1e-6) << "seed " << seed;
    }
    used += spent / budget;
  }
  EXPECT_GT(used / k_seeds, 0.5) << "hosts that hear nothing stop, and all the same most of it is used";
}

}  // namespace
}  // namespace gridctl::control::allowances_dealing_test
