// SPDX-License-Identifier: Apache-2.0
#include "forecast/progress.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "forecast/random.hpp"

namespace gridctl::forecast::progress_test {
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
    saved = {newest + 1, free_at, static_cast<double>(newest + 1) * pace.interval};
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
    ASSERT_NEAR(actual.work, expected.work, 1e-6) << i;
    saved_some += actual.count > 0 ? 1 : 0;
    overlapping += pace.upload > pace.interval + pace.stall ? 1 : 0;
  }
  EXPECT_GT(saved_some, 10'000);
  EXPECT_GT(overlapping, 5'000);
}

TEST(Progress, SavesSoonForAMove) {
  const Pace pace{100, 10, 20, 1000};  // a checkpoint is safe 130, 240, 350… seconds after the start
  const auto soon = [&](double elapsed) {
    const Saved saved = saved_soon(pace, elapsed, 30);
    return std::vector<double>{static_cast<double>(saved.count), saved.safe_at, saved.work};
  };
  EXPECT_EQ(soon(50), (std::vector<double>{1, 80, 50})) << "at once";
  EXPECT_EQ(soon(105), (std::vector<double>{1, 130, 100})) << "it is saving";
  EXPECT_EQ(soon(110), (std::vector<double>{2, 170, 130})) << "not before the pause is over";
  EXPECT_EQ(soon(310), (std::vector<double>{3, 340, 290}));
  EXPECT_EQ(soon(1085), (std::vector<double>{0, 0, 0})) << "it ends before";
  const Pace slow{100, 10, 500, 2000};  // the first one is sent from 110 to 610, then the newest
  EXPECT_DOUBLE_EQ(saved_soon(slow, 300, 30).safe_at, 1110);
  EXPECT_DOUBLE_EQ(saved_soon(pace, 310, 100).safe_at, 350) << "its own interval";
  Random random(9);
  for (int i = 0; i < 20'000; ++i) {
    Pace any{1 + random.unit() * 50, random.unit() * 10, random.unit() * 120, random.unit() * 1000};
    const double elapsed = random.unit() * any.end();
    const Saved saved = saved_soon(any, elapsed, random.unit() * 60);
    if (saved.count == 0) continue;
    ASSERT_GE(saved.safe_at, elapsed + any.upload) << i;
    ASSERT_GE(saved.count, saved_after(any, elapsed).count) << i;
    ASSERT_LE(saved.work, any.need) << i;
    ASSERT_LE(saved.work + static_cast<double>(saved.count) * any.stall + any.upload, saved.safe_at + 1e-9) << i;
  }
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
}  // namespace gridctl::forecast::progress_test
