// SPDX-License-Identifier: Apache-2.0
#include "job/keep.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace gridctl::job::keep_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t k_hour = 3'600'000, k_day = 24 * k_hour;
constexpr std::int64_t k_monday = 1'800'000'000'000 / (7 * k_day) * (7 * k_day) + 4 * k_day;

// Which of those taken at these hours after a Monday's midnight stay.
std::vector<int> stay(const KeepPolicy& policy, const std::vector<int>& hours, const std::vector<Metrics>& told = {}) {
  std::vector<KeepCandidate> saved;
  for (std::size_t i = 0; i < hours.size(); ++i)
    saved.push_back({WallTime{k_monday + hours[i] * k_hour}, i < told.size() ? &told[i] : nullptr});
  const std::vector<bool> flags = kept(policy, saved);
  std::vector<int> out;
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) out.push_back(hours[i]);
  return out;
}

KeepPolicy nothing() { return KeepPolicy::newest(0); }

TEST(Keep, KeepsTheNewest) {
  EXPECT_THAT(stay(KeepPolicy::newest(2), {1, 2, 3}), ElementsAre(2, 3));
  EXPECT_THAT(stay(KeepPolicy::newest(9), {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(stay(KeepPolicy::newest(2), {}), IsEmpty());
}

TEST(Keep, KeepsTheNewestOfEachPeriodThatHasAny) {
  KeepPolicy daily = nothing();
  daily.daily = 3;
  EXPECT_THAT(stay(daily, {1, 23, 25, 26, 200, 201}), ElementsAre(23, 26, 201));
  KeepPolicy weekly = nothing();
  weekly.weekly = 2;
  EXPECT_THAT(stay(weekly, {-1, 0, 167, 168}), ElementsAre(167, 168)) << "weeks begin on Monday";
  KeepPolicy hourly = nothing();
  hourly.hourly = 2;
  EXPECT_THAT(stay(hourly, {1, 2, 3}), ElementsAre(2, 3));
}

TEST(Keep, KeepsOneOfAPeriodWhenAClockWasSetBack) {
  KeepPolicy daily = nothing();
  daily.daily = 5;
  EXPECT_THAT(stay(daily, {1, 50, 2, 3}), ElementsAre(3));
}

TEST(Keep, KeepsTheBestAndOfEqualsTheNewest) {
  KeepPolicy best = nothing();
  best.best = 2;
  best.metric = "loss";
  const std::vector<Metrics> told{{{"loss", 3}}, {{"loss", 1}}, {{"step", 0}}, {{"loss", 2}}, {{"loss", 2}}};
  EXPECT_THAT(stay(best, {1, 2, 3, 4, 5}, told), ElementsAre(2, 5));
  best.highest = true;
  EXPECT_THAT(stay(best, {1, 2, 3, 4, 5}, told), ElementsAre(1, 5));
}

TEST(Keep, AddsUpWhatTheRulesWant) {
  KeepPolicy all = KeepPolicy::newest(1);
  all.daily = 2;
  all.best = 1;
  all.metric = "m";
  EXPECT_THAT(stay(all, {1, 2, 30, 31}, {{{"m", 0}}, {{"m", 1}}, {{"m", 2}}, {{"m", 3}}}), ElementsAre(1, 2, 31));
}

}  // namespace
}  // namespace gridctl::job::keep_test
