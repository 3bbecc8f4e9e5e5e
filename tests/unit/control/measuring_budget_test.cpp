// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/measure/measuring_budget.hpp"
#include "control/measure/network_record.hpp"
#include "hand_clock.hpp"
#include "measured_hosts.hpp"
#include "sched/link_schedule.hpp"
#include "support/results.hpp"
#include "wire/network.hpp"

namespace gridctl::control::measuring_budget_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;

TEST(MeasuringBudget, IsSmallUnlessSomebodyAsks) {
  const registry::Provider host;
  EXPECT_EQ(measuring_day_bytes(host, std::nullopt, false), sched::k_link_day_bytes);
  EXPECT_LE(sched::k_link_day_bytes, 64ull << 20);
  EXPECT_EQ(measuring_day_bytes(host, std::nullopt, true), k_asked_day_bytes);
}

TEST(MeasuringBudget, IsNothingOverMeteredAndSlowLinks) {
  registry::Provider host;
  EXPECT_EQ(measuring_day_bytes(host, 9e6, false), 0u);
  EXPECT_EQ(measuring_day_bytes(host, 11e6, false), sched::k_link_day_bytes);
  EXPECT_EQ(measuring_day_bytes(host, 9e6, true), k_asked_day_bytes) << "who asks waits for it";
  host.labels["metered"] = "yes";
  EXPECT_EQ(measuring_day_bytes(host, 1e9, true), 0u);
  host.labels["metered"] = "no";
  EXPECT_EQ(measuring_day_bytes(host, 1e9, false), sched::k_link_day_bytes);
}

TEST(MeasuringBudget, IsWhatTheLabelSays) {
  registry::Provider host;
  host.labels["measure"] = "off";
  EXPECT_EQ(measuring_day_bytes(host, 1e9, true), 0u);
  host.labels["measure"] = "200MB";
  EXPECT_EQ(measuring_day_bytes(host, std::nullopt, false), 200'000'000u);
}

TEST(MeasuringBudget, BoundsEachExchangeByWhatBothHostsHaveLeft) {
  EXPECT_EQ(exchange_bytes({10'000'000, 4'000'000}), 2'000'000u);
  EXPECT_EQ(exchange_bytes({1ull << 40}), wire::k_link_exchange_max);
}

TEST_F(Kept, WhatMayStillBeMovedTodayIsWhatWasNotSpent) {
  const registry::Provider ada = *registry.provider({"ada"});
  const auto left = [&](WallTime now, bool asked) { return *measuring_bytes_left(registry, ada, now, asked); };
  EXPECT_EQ(left(k_now, false), sched::k_link_day_bytes);
  ASSERT_THAT(recorder.here(ada, {5ms, 1e8, 2e8, 4000}, k_now), IsOk());
  EXPECT_EQ(left(k_now, false), sched::k_link_day_bytes - 4000);
  EXPECT_EQ(left(later(25h), false), sched::k_link_day_bytes);
  ASSERT_THAT(recorder.here(ada, {5ms, 1e8, 2e8, 1ull << 40}, k_now), IsOk());
  EXPECT_EQ(left(k_now, true), 0u) << "and never less";
  ASSERT_THAT(recorder.here(ada, {5ms, 9e6, 2e8, 0}, later(48h)), IsOk());
  EXPECT_EQ(left(later(48h), false), 0u) << "the slowest of its links decides";
}

}  // namespace
}  // namespace gridctl::control::measuring_budget_test
