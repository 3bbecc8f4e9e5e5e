// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/follow/tuning.hpp"
#include "hand_clock.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::tuning_test {
namespace {

using namespace std::chrono_literals;

TEST(MeasuredCostOf, ACheckpointIsItsMedianWithoutStrays) {
  std::vector<registry::Checkpoint> saved(4);
  saved[0].stall = 1s, saved[0].upload = 4s;
  saved[1].stall = 3s, saved[1].upload = 6s;
  saved[2].stall = 2s, saved[2].upload = 5s;
  saved[3].stall = 100s, saved[3].upload = 100s, saved[3].stray = true;
  registry::Provider host;
  sched::CheckpointCost cost = measured_cost(saved, host, 60s);
  EXPECT_EQ(cost.stall, 2s);
  EXPECT_EQ(cost.upload, 5s);
  EXPECT_EQ(cost.restart, 90s);
  host.figures["start_time"] = 2.5;
  saved.resize(1);
  saved[0].stall = 0s;
  cost = measured_cost(saved, host, 60s);
  EXPECT_EQ(cost.stall, 10ms) << "nothing is free";
  EXPECT_EQ(cost.restart, 62500ms);
  EXPECT_EQ(measured_cost({}, host, 60s).stall, 0s);
}

}  // namespace
}  // namespace gridctl::control::tuning_test
