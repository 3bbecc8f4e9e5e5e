// SPDX-License-Identifier: Apache-2.0
#include "control/follow/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::control {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

job::State running_at(double price_per_hour) {
  job::State state;
  for (job::Happening what :
       {job::Happening{job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, price_per_hour}}, "x"}},
        job::Happening{job::PayloadStarted{{1}}}})
    state = job::step(state, {WallTime{1000}, std::move(what)}).state;
  return state;
}
std::string limit_of(const job::State& state, const Limits& limits, registry::Spent spent) {
  spent.usd_per_hour = state.price_per_hour();
  const auto reached = judge_limits(state, limits, spent, WallTime{1000});
  return reached ? reached->limit : "";
}

TEST(Limits, KeepMoneyBackForSavingAndStopping) {
  const Limits limits{10, std::nullopt};
  const job::State state = running_at(12);  // 30 s cost 0.10 USD
  EXPECT_EQ(limit_of(state, limits, {9.89, 1h}), "");
  EXPECT_EQ(limit_of(state, limits, {9.90, 1h}), "budget");
  EXPECT_THAT(judge_limits(state, limits, {9.90, 1h, 12}, {})->text,
              HasSubstr("its budget of 10.00 USD is used up: 9.90 USD"));
}

TEST(Limits, NeverKeepMoreThanATenthBack) {
  EXPECT_EQ(limit_of(running_at(3600), {10, std::nullopt}, {8.9, 9s}), "");
  EXPECT_EQ(limit_of(running_at(3600), {10, std::nullopt}, {9.0, 9s}), "budget");
}

TEST(Limits, OfNothingStopNothingThatIsFree) {
  EXPECT_EQ(limit_of(running_at(0), {0, std::nullopt}, {0, 1000h}), "");
  EXPECT_EQ(limit_of(running_at(1), {0, std::nullopt}, {0.01, 1s}), "budget");
}

TEST(Limits, CountAllAttemptsAndHoldWhileItWaits) {
  job::State state = running_at(1);
  EXPECT_EQ(limit_of(state, {std::nullopt, 2h}, {0, 119min}), "");
  state = job::step(state, {WallTime{2000}, job::HostLost{{1}, 60s}}).state;
  EXPECT_EQ(limit_of(state, {std::nullopt, 2h}, {0, 2h}), "max_duration");
}

TEST(Limits, SayNothingOfWhatIsStoppedOrDone) {
  job::State state = running_at(1);
  state = job::step(state, {WallTime{2000}, job::CancelRequested{}}).state;
  EXPECT_EQ(limit_of(state, {1, 1h}, {9, 9h}), "");
  EXPECT_EQ(limit_of(running_at(1), {}, {9, 9h}), "");
}

TEST(Deadline, StopsWhenItIsHardAndIsToldOnceWhenItIsNot) {
  job::Spec spec;
  spec.deadline = job::Deadline{std::nullopt, 1h, true};
  const Limits hard = limits_of(spec, {5000});
  EXPECT_EQ(hard.until, WallTime{3'605'000});
  job::State state = running_at(1);
  EXPECT_FALSE(judge_limits(state, hard, {}, {3'604'999}));
  const auto reached = judge_limits(state, hard, {}, {3'605'000});
  EXPECT_EQ(reached->limit, "deadline");
  EXPECT_EQ(reached->text, "its deadline, 1970-01-01T01:00:05.000Z, is over");
  EXPECT_FALSE(judge_late(state, hard, {3'605'000}));
  spec.deadline->hard = false;
  const Limits soft = limits_of(spec, {5000});
  EXPECT_FALSE(judge_limits(state, soft, {}, {9'000'000}));
  EXPECT_FALSE(judge_late(state, soft, {3'604'999}));
  const auto late = judge_late(state, soft, {3'605'000});
  ASSERT_TRUE(late);
  const job::Step step = job::step(state, {{3'605'000}, *late});
  EXPECT_EQ(step.records.at(0).kind, "deadline_passed");
  EXPECT_FALSE(judge_late(step.state, soft, {9'000'000}));
  EXPECT_EQ(job::parse_state(job::to_json(step.state)).value(), step.state);
  EXPECT_TRUE(job::step(step.state, {{3'605'001}, *late}).records.empty());
}

TEST(SpendMeter, IsNotFooledByAClockThatIsSet) {
  SpendMeter meter;
  const auto at = [](int second) { return BootTime{} + std::chrono::seconds{second}; };
  EXPECT_EQ(meter.read({5, 1h}, 2, at(0)).ran, 1h);  // what the registry knew before
  EXPECT_EQ(meter.read({5, 1h + 10s}, 2, at(10)).ran, 1h + 10s);
  // set forward by a day
  EXPECT_EQ(meter.read({53, 25h + 20s}, 2, at(20)).ran, 1h + 20s);
  EXPECT_NEAR(meter.read({53, 25h + 30s}, 2, at(30)).usd, 5 + 2 * 20.0 / 3600, 1e-9);
  // and back by more
  EXPECT_EQ(meter.read({1, 10min}, 2, at(40)).ran, 1h + 40s);
}

TEST(SpendMeter, StandsStillWhileTheJobWaits) {
  SpendMeter meter;
  EXPECT_EQ(meter.read({5, 1h}, 2, BootTime{}).ran, 1h);
  EXPECT_EQ(meter.read({5, 1h}, 0, BootTime{} + 5h).ran, 1h);
}

}  // namespace
}  // namespace gridctl::control
