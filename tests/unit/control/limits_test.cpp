// SPDX-License-Identifier: Apache-2.0
#include "control/follow/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace gridctl::control::limits_test {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

job::State running_at(double price_per_hour) {
  job::State state;
  for (job::Event what :
       {job::Event{job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, price_per_hour}}, "x"}},
        job::Event{job::PayloadStarted{{1}}}})
    state = job::step(state, {WallTime{1000}, std::move(what)}).state;
  return state;
}
std::string limit_of(const job::State& state, const JobLimits& limits, registry::Spent spent) {
  spent.usd_per_hour = state.price_per_hour();
  const auto reached = judge_limits(state, limits, spent, WallTime{1000});
  return reached ? reached->limit : "";
}

TEST(Limits, KeepMoneyBackForSavingAndStopping) {
  const JobLimits limits{10, std::nullopt};
  const job::State state = running_at(12);  // 30 s cost 0.10 USD
  EXPECT_EQ(limit_of(state, limits, {9.89, 1h}), "");
  EXPECT_EQ(limit_of(state, limits, {9.90, 1h}), "budget");
  EXPECT_THAT(judge_limits(state, limits, {9.90, 1h, 12}, {})->text,
              HasSubstr("its budget of 10.00 USD is used up: 9.90 USD"));
}

TEST(Limits, PayForTheStopFromTheRestOfTheBudgetAndTellWhatIsSpent) {
  const auto grace_of = [](double usd, double rate, double more = 0) {
    return judge_limits(running_at(rate), {10, std::nullopt}, {usd, 1h, rate}, {}, more)->grace;
  };
  EXPECT_EQ(grace_of(9.9, 12), 30s);
  EXPECT_EQ(grace_of(9.5, 180), 10s);
  EXPECT_EQ(grace_of(9.9, 7200), 5s);
  EXPECT_THAT(judge_limits(running_at(3600), {10, std::nullopt}, {8.0, 9s, 3600}, {}, 2)->text,
              HasSubstr("8.00 USD spent"));
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
  const JobLimits hard = limits_of(spec, {5000});
  EXPECT_EQ(hard.until, WallTime{3'605'000});
  job::State state = running_at(1);
  EXPECT_FALSE(judge_limits(state, hard, {}, {3'604'999}));
  const auto reached = judge_limits(state, hard, {}, {3'605'000});
  EXPECT_EQ(reached->limit, "deadline");
  EXPECT_EQ(reached->text, "its deadline, 1970-01-01T01:00:05.000Z, has passed");
  EXPECT_FALSE(judge_late(state, hard, {3'605'000}));
  spec.deadline->hard = false;
  const JobLimits soft = limits_of(spec, {5000});
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

constexpr int k_day = 24 * 3600;

// An attempt as the registry keeps it: by the wall clock, at 2 USD an hour.
struct Books {
  std::optional<int> started, ended;  // seconds
  [[nodiscard]] SpendMeter::Ask ask() const {
    return [this](WallTime until) -> Result<registry::Spent> {
      if (!started) return registry::Spent{5, 1h};  // of attempts before
      const std::int64_t end = ended ? *ended * 1000ll : until.ms;
      const std::chrono::milliseconds ran{std::max<std::int64_t>(end - *started * 1000ll, 0)};
      return registry::Spent{5 + 2 * static_cast<double>(ran.count()) / 3.6e6, 1h + ran};
    };
  }
};

struct Metered {
  Books books{};
  SpendMeter meter{};
  // `set`: what the wall clock is ahead of where it stood at first.
  registry::Spent at(int second, int set, bool runs) {
    return meter
        .read(books.ask(), Epoch{runs ? 3u : 0u}, runs ? 2 : 0, BootTime{} + std::chrono::seconds{second},
              WallTime{(std::int64_t{second} + set) * 1000})
        .value();
  }
};

TEST(SpendMeter, IsNotFooledByAClockThatIsSet) {
  for (const int set : {k_day, -k_day}) {
    Metered job;
    EXPECT_EQ(job.at(0, 0, false).ran, 1h);  // what the registry knew before
    job.books.started = 10;
    EXPECT_EQ(job.at(10, 0, true).ran, 1h);
    EXPECT_EQ(job.at(20, set, true).ran, 1h + 10s) << set;
    EXPECT_EQ(job.at(30, set, true).ran, 1h + 20s) << set;
    EXPECT_NEAR(job.at(40, set, true).usd, 5 + 2 * 30.0 / 3600, 1e-9) << set;
    EXPECT_EQ(job.at(50, 0, true).ran, 1h + 40s) << set;  // and back
    EXPECT_EQ(job.at(60, set, true).ran, 1h + 50s) << set;
    job.books.ended = 65 + set;
    EXPECT_LE(job.at(70, set, false).ran, 1h + 60s) << set;
    EXPECT_GE(job.at(80, set, false).ran, 1h + 50s) << set;
  }
}

TEST(SpendMeter, StandsStillWhileTheJobWaits) {
  Metered job;
  for (const auto& [second, set] : {std::pair{0, 0}, {18'000, 0}, {18'010, k_day}, {18'020, -k_day}})
    EXPECT_EQ(job.at(second, set, false).ran, 1h);
}

// It was silent while it ran, and its end is told with its beginning.
TEST(SpendMeter, BelievesWhatIsToldInHindsight) {
  Metered job;
  EXPECT_EQ(job.at(0, 0, false).ran, 1h);
  EXPECT_EQ(job.at(3699, 0, false).ran, 1h);
  job.books = {100, 3700};
  EXPECT_EQ(job.at(3700, 0, false).ran, 2h);
  EXPECT_NEAR(job.at(3800, 0, false).usd, 7, 1e-9);
}

}  // namespace
}  // namespace gridctl::control::limits_test
