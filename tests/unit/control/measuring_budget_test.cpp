// SPDX-License-Identifier: Apache-2.0
#include "control/measure/measuring_budget.hpp"

#include <gtest/gtest.h>

#include "sched/link_schedule.hpp"
#include "wire/network.hpp"

namespace gridctl::control::measuring_budget_test {
namespace {

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

}  // namespace
}  // namespace gridctl::control::measuring_budget_test
