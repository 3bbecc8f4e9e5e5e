// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "job/rank_pace.hpp"

namespace gridctl::job::rank_pace_test {
namespace {

BootTime at(double seconds) { return BootTime{static_cast<std::int64_t>(seconds * 1e9)}; }

// A synchronous job: each step takes as long as its slowest rank.
struct Gang {
  std::uint32_t world = 8;
  std::mt19937 random{4711};
  RankPace pace{world};
  double now = 0;
  std::int64_t step = 0;

  // `slow` computes `factor` times as long. Log-normal noise of that spread.
  void run(double spread, std::optional<std::uint32_t> slow = {}, double factor = 1, bool tells_busy = true) {
    std::lognormal_distribution<double> noise(0, spread);
    std::vector<double> costs;
    for (std::uint32_t rank = 0; rank < world; ++rank) costs.push_back(0.5 * noise(random) * (slow == rank ? factor : 1));
    const double longest = *std::max_element(costs.begin(), costs.end());
    ++step;
    for (std::uint32_t rank = 0; rank < world; ++rank)
      pace.told({rank, step, at(now + (tells_busy ? longest : costs[rank])),
                 tells_busy ? std::optional(costs[rank]) : std::nullopt});
    now += longest;
  }
};

using namespace std::chrono_literals;

// Ranks that tell what they compute; how many steps of `steps` the last rank takes `factor` times as long.
RankPace paced(std::uint32_t world, int steps, int slow, double factor) {
  RankPace pace(world);
  for (int step = 0; step < steps; ++step)
    for (std::uint32_t rank = 0; rank < world; ++rank)
      pace.told({rank, step, at(step), rank + 1 == world && step >= steps - slow ? factor : 1.0});
  return pace;
}

TEST(RankPace, NamesARankAtThirtyPercentOfItsSpeedWithinTenSteps) {
  for (std::uint32_t slow = 0; slow < 8; ++slow) {
    Gang gang;
    for (int i = 0; i < 30; ++i) gang.run(0.1);
    EXPECT_FALSE(gang.pace.straggler());
    for (int i = 0; i < 10; ++i) gang.run(0.1, slow, 1 / 0.3);
    const auto found = gang.pace.straggler();
    ASSERT_TRUE(found) << slow;
    EXPECT_EQ(found->rank, slow);
    EXPECT_NEAR(found->factor, 3.3, 0.6);
  }
}

TEST(RankPace, NamesItByTheMomentsOfItsStepsWhereRanksTellNoTimes) {
  Gang gang;
  for (int i = 0; i < 12; ++i) gang.run(0.05, 5, 1 / 0.3, false);
  const auto found = gang.pace.straggler();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 5u);
}

TEST(RankPace, GivesNoFalseAlarmInTenThousandStepsOfNoise) {
  for (const double spread : {0.02, 0.1, 0.3})
    for (const bool tells_busy : {true, false}) {
      Gang gang;
      for (int i = 0; i < 10'000; ++i) {
        gang.run(spread, {}, 1, tells_busy);
        ASSERT_FALSE(gang.pace.straggler()) << gang.pace.straggler()->text() << " at step " << i << ", spread " << spread;
      }
    }
}

TEST(RankPace, OfTwoRanksTheSlowOneIsTold) {
  Gang gang;
  gang.world = 2;
  gang.pace = RankPace(2);
  for (int i = 0; i < 10; ++i) gang.run(0.05, 1, 3);
  ASSERT_TRUE(gang.pace.straggler());
  EXPECT_EQ(gang.pace.straggler()->rank, 1u);
}

TEST(RankPace, ASingleSlowStepIsNoStraggler) {
  Gang gang;
  for (int i = 0; i < 20; ++i) gang.run(0.05);
  gang.run(0.05, 3, 20);
  for (int i = 0; i < 3; ++i) gang.run(0.05);
  EXPECT_FALSE(gang.pace.straggler());
}

TEST(RankPace, StepsThatComeLateTwiceOrNeverDoNoHarm) {
  RankPace pace(2);
  for (std::int64_t step = 0; step < 1000; ++step) pace.told({0, step, at(static_cast<double>(step)), 1.0});
  EXPECT_EQ(pace.steps(), 0u);
  pace.told({1, 999, at(1000), 1.0});
  pace.told({1, 999, at(1001), 9.0});
  pace.told({7, 999, at(1001), 9.0});  // no rank of this gang
  EXPECT_EQ(pace.steps(), 1u);
}

TEST(Progress, FindsAHangWithinThreeUsualStepsAndAMinuteAtMost) {
  for (const double step : {0.2, 2.0, 15.0, 120.0}) {
    Progress progress;
    double now = 0;
    for (int i = 0; i < 50; ++i) progress.sign(at(now += step));
    const double limit = std::max(30.0, 3 * step);
    EXPECT_FALSE(progress.hang(at(now + limit - 0.1))) << step;
    const auto hang = progress.hang(at(now + limit + 0.1));
    ASSERT_TRUE(hang) << step;
    EXPECT_LE(seconds(hang->allowed), std::max(60.0, 3 * step));
  }
}

TEST(Progress, SaysHowLongAndWhatIsUsual) {
  Progress progress;
  for (int i = 0; i <= 50; ++i) progress.sign(at(2 * i));
  EXPECT_EQ(progress.hang(at(161))->text(), "no progress for 61 s; usually there is progress every 2.0 s");
}

TEST(Progress, KnowsPausesThatTheJobHasMadeBefore) {
  Progress progress;
  double now = 0;
  for (int i = 0; i < 100; ++i) progress.sign(at(now += i % 25 == 24 ? 90 : 1));  // evaluates for 90 s now and then
  EXPECT_FALSE(progress.hang(at(now + 100)));
  EXPECT_TRUE(progress.hang(at(now + 140)));
}

TEST(Progress, JudgesNoJobOfWhichItKnowsNoRhythmAndNoneInAKnownPause) {
  Progress progress;
  progress.sign(at(1));
  EXPECT_FALSE(progress.hang(at(1e6)));
  for (int i = 2; i < 60; ++i) progress.sign(at(i));
  progress.pause(at(5000));
  EXPECT_FALSE(progress.hang(at(5025)));
  EXPECT_TRUE(progress.hang(at(5031)));
}

TEST(Progress, GivesNoFalseAlarmInTenThousandStepsOfNoise) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.5);
  Progress progress;
  double now = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double gap = 2 * noise(random) * (random() % 500 == 0 ? 4 : 1);
    if (i > 600) { ASSERT_FALSE(progress.hang(at(now + gap))) << "step " << i << " after " << gap; }
    progress.sign(at(now += gap));
  }
}

TEST(RankPace, WantsEightOfTenStepsAndMoreThanHalfAsLongAgain) {
  EXPECT_FALSE(paced(4, 9, 9, 3).straggler()) << "nine steps are too few";
  ASSERT_TRUE(paced(4, 10, 10, 3).straggler());
  EXPECT_EQ(paced(4, 10, 10, 3).straggler()->rank, 3u);
  EXPECT_EQ(paced(4, 10, 10, 3).straggler()->steps, 10u);
  EXPECT_DOUBLE_EQ(paced(4, 10, 10, 3).straggler()->factor, 3);
  EXPECT_TRUE(paced(4, 20, 8, 3).straggler());
  EXPECT_FALSE(paced(4, 20, 7, 3).straggler());
  EXPECT_FALSE(paced(4, 10, 10, 1.5).straggler());
  EXPECT_TRUE(paced(4, 10, 10, 1.51).straggler());
  EXPECT_FALSE(paced(1, 20, 20, 3).straggler()) << "who is alone has no peers";
  EXPECT_EQ(paced(4, 40, 0, 1).steps(), k_pace_steps + 1) << "older ones are forgotten";
}

TEST(RankPace, CountsNoRankThatDoesNotExistAndNoStepTwice) {
  RankPace pace(2);
  pace.told({2, 0, at(0), 1.0});
  pace.told({0, 0, at(0), 1.0});
  pace.told({0, 0, at(9), 9.0});
  EXPECT_EQ(pace.steps(), 0u);
  pace.told({1, 0, at(0), 1.0});
  EXPECT_EQ(pace.steps(), 1u);
  pace.told({0, 5, at(1), 1.0});
  for (const std::uint32_t rank : {0u, 1u}) pace.told({rank, 6, at(2), 1.0});
  pace.told({1, 5, at(3), 1.0});
  EXPECT_EQ(pace.steps(), 2u) << "an older step will not become whole any more";
}

TEST(Progress, WantsTwentySignsAndAllowsThirtySecondsAtLeast) {
  Progress few, fast, slow;
  for (int i = 0; i < 20; ++i) few.sign(at(i));
  EXPECT_FALSE(few.allowed()) << "nineteen pauses";
  few.sign(at(20));
  EXPECT_EQ(few.allowed(), 30s);
  EXPECT_FALSE(few.hang(at(50)));
  ASSERT_TRUE(few.hang(at(50.5)));
  EXPECT_EQ(few.hang(at(50.5))->silent, 30500ms);
  EXPECT_EQ(few.hang(at(50.5))->allowed, 30s);
  EXPECT_EQ(few.hang(at(50.5))->usual, 1s);
  for (int i = 0; i <= 20; ++i) slow.sign(at(40.0 * i));
  EXPECT_EQ(slow.allowed(), 120s) << "three times as long as it usually takes";
  for (int i = 0; i <= 20; ++i) fast.sign(at(15.0 * i));
  EXPECT_EQ(fast.allowed(), 45s);
  fast.pause(at(400));
  EXPECT_FALSE(fast.hang(at(445)));
  EXPECT_TRUE(fast.hang(at(445.1)));
  fast.sign(at(300));
  EXPECT_TRUE(fast.hang(at(445.1))) << "an older sign is no news";
  Progress paused;
  for (int i = 0; i <= 20; ++i) paused.sign(at(i));
  paused.sign(at(120));
  EXPECT_EQ(paused.allowed(), 150s) << "it has paused for a hundred before";
  EXPECT_EQ((Progress::Hang{61s, 60s, 2s}.text()), "no progress for 61 s; usually there is progress every 2.0 s");
  EXPECT_EQ((Progress::Hang{9900ms, 9s, 10s}.text()), "no progress for 9.9 s; usually there is progress every 10 s");
}

}  // namespace
}  // namespace gridctl::job::rank_pace_test
