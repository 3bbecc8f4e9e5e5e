// SPDX-License-Identifier: Apache-2.0
#include "sched/interval.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gridctl::sched::interval_test {
namespace {
using namespace std::chrono_literals;

// Reference values computed apart from this code from Daly's 2006 complete model; Daly's higher order as coded in
// LLNL SCR's scr_ckpt_interval.py.
struct Row {
  double mtbf, cost, restart, young, exact, efficiency;
};
constexpr Row k_rows[] = {
    {900, 5, 70, 94.868, 91.565, 0.831045},        {900, 120, 300, 464.758, 388.444, 0.407273},
    {3600, 5, 70, 189.737, 186.418, 0.929958},     {3600, 120, 300, 929.516, 851.297, 0.70248},
    {21600, 5, 70, 464.758, 461.431, 0.975471},    {21600, 120, 300, 2276.84, 2197.553, 0.885872},
    {86400, 5, 70, 929.516, 926.186, 0.988479},    {86400, 120, 300, 4553.68, 4474.034, 0.94493},
    {604800, 5, 70, 2459.268, 2455.936, 0.995824}, {604800, 120, 300, 12047.904, 11968.038, 0.979725},
};

TEST(CheckpointInterval, AgreesWithTheReferenceTable) {
  for (const Row& row : k_rows) {
    EXPECT_NEAR(young_interval(row.cost, row.mtbf), row.young, 1e-3);
    EXPECT_NEAR(optimal_interval(row.cost, row.mtbf), row.exact, 1e-3);
    EXPECT_NEAR(best_efficiency(row.cost, row.mtbf, row.restart), row.efficiency, 1e-6);
  }
}

TEST(CheckpointInterval, SolvesItsEquationOverTwelveDecades) {
  for (double x = 1e-11; x < 30; x *= 3.7) {
    const double y = optimal_interval(x, 1);
    ASSERT_GT(y, 0);
    ASSERT_LE(y, 1);
    EXPECT_NEAR(std::log1p(-y) + y, -x, x * 1e-4) << x;
  }
}

TEST(CheckpointInterval, NeverExceedsTheTimeBetweenFailures) {
  EXPECT_LE(optimal_interval(1e6, 100), 100);
  EXPECT_EQ(optimal_interval(0, 100), 0);
}

constexpr double k_home = 0.011, k_market = 0.1, k_datacenter = 1 / 6240.0;  // failures per hour

TEST(CheckpointInterval, StaysWithinItsBounds) {
  EXPECT_EQ(checkpoint_interval({1ms, 0s, 10s}, k_market).every, k_interval_min);
  EXPECT_EQ(checkpoint_interval({600s, 0s, 10s}, k_datacenter / 2).every, k_interval_max);
  EXPECT_EQ(checkpoint_interval({10ms, 300s, 10s}, k_market).every, 300s);
  const Interval usual = checkpoint_interval({5s, 20s, 60s}, k_home);
  EXPECT_GT(usual.every, 10min);
  EXPECT_LT(usual.every, 40min);
  EXPECT_GT(usual.efficiency, 0.98);
}

TEST(CheckpointInterval, ShowsItsArithmeticInOneLine) {
  EXPECT_EQ(
      checkpoint_interval({5s, 20s, 65s}, k_home).reason,
      "30m6s: saving pauses the job for 5s, a checkpoint is safe after 20s; expected: one failure every 3d19h, 1m5s "
      "to recover, 99.4 % useful work");
}

TEST(CheckpointInterval, FallsAsFailuresBecomeMoreFrequent) {
  const Duration calm = checkpoint_interval({5s, 1s, 60s}, 0.01).every;
  const Duration rough = checkpoint_interval({5s, 1s, 60s}, 1).every;
  EXPECT_NEAR(seconds(calm) / seconds(rough), 10, 0.5);  // with the root of the rate
}

TEST(CheckpointInterval, TakesWhatCanArriveInTime) {
  EXPECT_EQ(checkpoint_interval({5s, 0s, 60s}, k_home).pause, k_pause_min);
  EXPECT_EQ(checkpoint_interval({5s, 20s, 60s}, k_home).pause, 20s);
  const Interval crowded = checkpoint_interval({10ms, 300s, 60s}, k_market);
  EXPECT_EQ(crowded.pause, crowded.every / 2);  // a save that comes a little early is not left out
}

TEST(CheckpointInterval, IsModestUntilACheckpointWasMeasured) {
  const Interval home = checkpoint_interval({}, k_home);
  EXPECT_GT(home.every, 10min);
  EXPECT_LE(home.every, k_interval_unmeasured_max);
  EXPECT_EQ(checkpoint_interval({}, k_datacenter).every, k_interval_unmeasured_max);
  EXPECT_NE(home.reason.find("is assumed to pause the job for 5s"), std::string::npos) << home.reason;
}

TEST(CheckpointInterval, KeepsTheCurrentOneForSmallChanges) {
  const Duration fresh = checkpoint_interval({5s, 20s, 60s}, k_home).every;
  EXPECT_EQ(checkpoint_interval({5500ms, 20s, 60s}, k_home, fresh).every, fresh);
  EXPECT_NE(checkpoint_interval({10s, 20s, 60s}, k_home, fresh).every, fresh);
}
TEST(CheckpointInterval, SaysWhenCheckpointingAloneWastesOverHalf) {
  CheckpointCost cost{std::chrono::seconds{600}, {}, std::chrono::seconds{60}};
  EXPECT_THAT(checkpoint_interval(cost, 3).reason, ::testing::HasSubstr("checkpointing alone keeps"));
  EXPECT_THAT(checkpoint_interval(cost, 0.1).reason, ::testing::Not(::testing::HasSubstr("checkpointing alone")));
}

}  // namespace
}  // namespace gridctl::sched::interval_test
