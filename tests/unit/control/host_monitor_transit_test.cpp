// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/host_monitor.hpp"

#include <gtest/gtest.h>

namespace gridctl::control::host_monitor_transit_test {
namespace {

using namespace std::chrono_literals;

BootTime host(Duration after) { return BootTime{} + 40h + after; }  // booted long before us
BootTime here(Duration after) { return BootTime{} + 1min + after; }

TEST(Transit, TellsWhatWasHeldUpOnTheWay) {
  Transit transit;
  EXPECT_EQ(transit.took(host(0s), here(20ms)), 0s);
  EXPECT_LE(transit.took(host(10s), here(10s + 25ms)), 5ms);
  const Duration cut = transit.took(host(20s), here(80s + 20ms));
  EXPECT_LE(cut, 1min);
  EXPECT_GE(cut, 59'900ms);
  EXPECT_EQ(transit.took(host(90s), here(90s + 20ms)), 0s);
}

TEST(Transit, LetsClocksDriftApart) {
  Transit transit;
  EXPECT_EQ(transit.took(host(0s), here(0s)), 0s);
  // The host's clock is slow by 100 ppm: 8.6 seconds a day.
  for (int minutes = 1; minutes < 24 * 60; ++minutes) {
    const Duration passed = std::chrono::minutes{minutes};
    EXPECT_LT(transit.took(host(passed - passed / 10'000), here(passed)), 10ms);
  }
}

TEST(Transit, IsNeverMoreThanTheConnectionIsOld) {
  Transit transit;
  EXPECT_EQ(transit.took(host(0s), here(0s)), 0s);
  EXPECT_EQ(transit.took(host(-30h), here(5s)), 5s);
  EXPECT_EQ(transit.took(host(900h), here(6s)), 0s);
}

TEST(Transit, MakesAgesOlder) {
  wire::PollReply reply;
  wire::AttemptStatus& status = reply.attempts.emplace_back();
  status.ended_ms_ago = 200;
  status.allowed_ms = 1500;
  status.checkpoints.emplace_back().age_ms = 40;
  make_older(reply, 100ms);
  EXPECT_EQ(status.ended_ms_ago, 200);
  make_older(reply, 3s);
  EXPECT_EQ(status.ended_ms_ago, 3200);
  EXPECT_EQ(status.started_ms_ago, -1);
  EXPECT_EQ(status.allowed_ms, 0);
  EXPECT_EQ(status.checkpoints.front().age_ms, 3040);
}

}  // namespace
}  // namespace gridctl::control::host_monitor_transit_test
