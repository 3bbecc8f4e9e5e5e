// SPDX-License-Identifier: Apache-2.0
#include "control/serve/scaler.hpp"

#include <gtest/gtest.h>

namespace gridctl::control::scaler_test {
namespace {
using namespace std::chrono_literals;

job::Service elastic() {
  job::Service service;
  service.replicas_min = 1;
  service.scale_concurrency = 4;
  service.up_after = 15s;
  service.down_after = 10min;
  return service;
}

// A load for so long; how many replicas are wanted then.
int after(Scaler& scaler, BootTime& now, std::uint64_t load, Duration time) {
  for (const BootTime end = now + time; now < end; now = now + Duration{1s}) scaler.see(now, load, 0, true);
  return scaler.wanted();
}

TEST(Scaler, FollowsTheRequestsThatAreUnderWay) {
  Scaler scaler(elastic(), 6, 0, false);
  BootTime now{1'000'000'000'000};
  EXPECT_EQ(after(scaler, now, 4, 5min), 1);
  EXPECT_EQ(after(scaler, now, 16, 10s), 1) << "a moment is no load";
  EXPECT_EQ(after(scaler, now, 16, 40s), 4);
  EXPECT_EQ(after(scaler, now, 1000, 1min), 6) << "the most";
  EXPECT_EQ(after(scaler, now, 0, 9min), 6);
  EXPECT_EQ(after(scaler, now, 0, 3min), 5) << "one at a time";
  EXPECT_EQ(after(scaler, now, 24, 1min), 6);
  EXPECT_EQ(after(scaler, now, 0, 2h), 1) << "the least";
}

TEST(Scaler, FollowsTheRequestsPerSecondInstead) {
  job::Service service = elastic();
  service.scale_concurrency = 0;
  service.scale_rate = 10;
  Scaler scaler(service, 6, 0, false);
  BootTime now{1'000'000'000'000};
  std::uint64_t requests = 0;
  const auto after_rate = [&](std::uint64_t rate, Duration time) {
    for (const BootTime end = now + time; now < end; now = now + Duration{1s}) scaler.see(now, 1000, requests += rate, true);
    return scaler.wanted();
  };
  EXPECT_EQ(after_rate(10, 2min), 1) << "whatever is under way";
  EXPECT_EQ(after_rate(35, 1min), 4);
  requests = 0;
  EXPECT_EQ(after_rate(35, 1min), 4) << "HAProxy was started anew";
  EXPECT_EQ(after_rate(0, 11min), 3);
}

TEST(Scaler, AGatewayGoesOnWithAsManyAsThereWere) {
  EXPECT_EQ(Scaler(elastic(), 6, 4, false).wanted(), 4);
  EXPECT_EQ(Scaler(elastic(), 3, 4, false).wanted(), 3);
  Scaler fixed(job::Service{}, 2, 0, true);
  BootTime now{1'000'000'000'000};
  EXPECT_EQ(after(fixed, now, 100, 1h), 2);
  EXPECT_EQ(after(fixed, now, 0, 1h), 2);
  EXPECT_FALSE(fixed.is_asleep());
}

job::Service sleepy() {
  job::Service service = elastic();
  service.sleeps = true;
  return service;
}

TEST(Scaler, FallsAsleepWhenTheLastReplicaIsIdle) {
  Scaler scaler(sleepy(), 2, 2, false);
  BootTime now{1'000'000'000'000};
  EXPECT_EQ(after(scaler, now, 0, 11min), 1);
  EXPECT_FALSE(scaler.is_asleep()) << "one after the other";
  (void)after(scaler, now, 0, 10min);
  EXPECT_TRUE(scaler.is_asleep());
  scaler.see(now, 1, 0, false);
  EXPECT_FALSE(scaler.is_asleep());
  EXPECT_EQ(scaler.wanted(), 1);
}

TEST(Scaler, StaysAwakeForRequestsThatItNeverSees) {
  Scaler scaler(sleepy(), 1, 1, false);
  std::uint64_t requests = 0;
  for (BootTime now{1'000'000'000'000}; requests < 100; now = now + Duration{1min}) scaler.see(now, 0, ++requests, true);
  EXPECT_FALSE(scaler.is_asleep()) << "each was answered between two looks";
}

TEST(Scaler, StaysAwakeWhileAServerLoads) {
  Scaler scaler(sleepy(), 1, 1, true);
  EXPECT_TRUE(scaler.is_asleep()) << "as the gateway before it was";
  BootTime now{1'000'000'000'000};
  scaler.see(now, 1, 0, false);
  for (int minutes = 0; minutes < 60; ++minutes) scaler.see(now = now + Duration{1min}, 0, 0, false);
  EXPECT_FALSE(scaler.is_asleep());
}

}  // namespace
}  // namespace gridctl::control::scaler_test
