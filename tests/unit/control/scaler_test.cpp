// SPDX-License-Identifier: Apache-2.0
#include "control/serve/scaler.hpp"

#include <gtest/gtest.h>

namespace gridctl::control {
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
  for (const BootTime end = now + time; now < end; now = now + Duration{1s}) scaler.see(now, load);
  return scaler.wanted();
}

TEST(Scaler, FollowsTheRequestsThatAreUnderWay) {
  Scaler scaler(elastic(), 6, 0);
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

TEST(Scaler, AGatewayGoesOnWithAsManyAsThereWere) {
  EXPECT_EQ(Scaler(elastic(), 6, 4).wanted(), 4);
  EXPECT_EQ(Scaler(elastic(), 3, 4).wanted(), 3);
  Scaler fixed(job::Service{}, 2, 0);
  BootTime now{1'000'000'000'000};
  EXPECT_EQ(after(fixed, now, 100, 1h), 2);
}

}  // namespace
}  // namespace gridctl::control
