// SPDX-License-Identifier: Apache-2.0
#include "forecast/progress.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "forecast/random.hpp"

namespace gridctl::forecast {
namespace {

// The same, checkpoint by checkpoint.
Saved walk(const Pace& pace, double elapsed) {
  std::vector<double> taken;
  for (double left = pace.need, at = 0; left > pace.interval * (1 + 1e-9); left -= pace.interval) {
    at += pace.interval + pace.stall;
    taken.push_back(at);
  }
  Saved saved;
  double free_at = 0;  // the link
  for (std::size_t next = 0; next < taken.size();) {
    const double begins = std::max(free_at, taken[next]);
    std::size_t newest = next;
    while (newest + 1 < taken.size() && taken[newest + 1] <= begins + 1e-9) ++newest;
    free_at = begins + pace.upload;
    if (free_at > elapsed) break;
    saved = {newest + 1, free_at};
    next = newest + 1;
  }
  return saved;
}

TEST(Progress, IsThatOfAWalkFromCheckpointToCheckpoint) {
  Random random(7);
  int saved_some = 0, overlapping = 0;
  for (int i = 0; i < 20'000; ++i) {
    Pace pace;
    pace.interval = 1 + static_cast<double>(random.below(50));
    pace.stall = static_cast<double>(random.below(10));
    pace.upload = static_cast<double>(random.below(120)) + 0.25;
    pace.need = static_cast<double>(random.below(1000)) + 0.5;
    const double elapsed = random.unit() * pace.end();
    const Saved expected = walk(pace, elapsed), actual = saved_after(pace, elapsed);
    ASSERT_EQ(actual.count, expected.count) << i;
    ASSERT_NEAR(actual.safe_at, expected.safe_at, 1e-6) << i;
    saved_some += actual.count > 0 ? 1 : 0;
    overlapping += pace.upload > pace.interval + pace.stall ? 1 : 0;
  }
  EXPECT_GT(saved_some, 10'000);
  EXPECT_GT(overlapping, 5'000);
}

TEST(Progress, EndsWithoutALastCheckpoint) {
  const Pace pace{10, 1, 0, 30};
  EXPECT_EQ(pace.checkpoints(), 2u);
  EXPECT_DOUBLE_EQ(pace.end(), 32);
  EXPECT_EQ(saved_after(pace, 32).count, 2u);
}

TEST(Progress, SavesNothingWithoutAnInterval) {
  const Pace pace{std::numeric_limits<double>::infinity(), 1, 0, 30};
  EXPECT_DOUBLE_EQ(pace.end(), 30);
  EXPECT_EQ(saved_after(pace, 30).count, 0u);
  EXPECT_EQ(saved_after(Pace{10, 1, 0, 5}, 5).count, 0u);
}

}  // namespace
}  // namespace gridctl::forecast
