// SPDX-License-Identifier: Apache-2.0
#include "wire/window.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace gridctl::wire::window_test {
namespace {

using std::chrono::milliseconds;

BootTime at(std::int64_t ms) { return {ms * 1'000'000}; }

RoundTrip path_of(std::initializer_list<int> samples_ms) {
  RoundTrip path;
  std::int64_t now = 1;
  for (const int sample : samples_ms) path.measured(milliseconds{sample}, at(now++));
  return path;
}

TEST(ReceiveWindow, RefusesMoreThanItGranted) {
  ReceiveWindow window;
  EXPECT_TRUE(window.came(k_window_first));
  EXPECT_FALSE(window.came(1));
}

TEST(ReceiveWindow, GrantsWhatTheReaderTookAndNothingBefore) {
  ReceiveWindow window;
  ASSERT_TRUE(window.came(k_window_first));
  EXPECT_EQ(window.taken(1000, at(1), {}, false), 0u) << "not worth a message";
  EXPECT_EQ(window.taken(k_window_first / 2, at(1), {}, false), k_window_first / 2 + 1000);
  EXPECT_TRUE(window.came(k_window_first / 2 + 1000));
  EXPECT_FALSE(window.came(1)) << "the reader has not taken the rest";
}

// A link that carries `rate` bytes in a millisecond, with `one_way` milliseconds of delay, and a reader that takes
// `reads` of them at most. Returns the bytes that were read in the last second of `ms`, and the window.
struct Outcome {
  std::uint64_t in_last_second = 0, window = 0;
};
Outcome play(std::uint64_t rate, int one_way, std::uint64_t reads, int ms) {
  ReceiveWindow window;
  RoundTrip path;
  std::uint64_t credit = k_window_first, queue = 0, unread = 0, last = 0;
  std::deque<std::uint64_t> down(static_cast<std::size_t>(one_way), 0), up(static_cast<std::size_t>(one_way), 0);
  for (int now = 0; now < ms; ++now) {
    credit += up.front();
    up.pop_front();
    queue += credit;  // the sender has always something
    credit = 0;
    const std::uint64_t leaves = std::min(rate, queue);
    queue -= leaves;
    if (now % 20 == 0) path.measured(milliseconds{2 * one_way + static_cast<int>(queue / rate)}, at(now));
    down.push_back(leaves);
    EXPECT_TRUE(window.came(down.front()));
    unread += down.front();
    down.pop_front();
    const std::uint64_t taken = std::min(unread, reads);
    unread -= taken;
    up.push_back(taken > 0 ? window.taken(taken, at(now), path, true) : 0);
    if (now >= ms - 1000) last += taken;
  }
  return {last, window.size()};
}

TEST(ReceiveWindow, GrowsUntilItFillsALongFastLink) {
  const Outcome outcome = play(6250, 20, UINT64_MAX, 10'000);  // 50 Mbit/s, 40 ms
  EXPECT_GT(outcome.in_last_second, 6'250'000u * 95 / 100);
  EXPECT_LE(outcome.window, 1u << 20) << "four times what is under way would wait in queues";
}

TEST(ReceiveWindow, GrowsNoFurtherThanItsLimit) {
  const Outcome outcome = play(1'250'000, 50, UINT64_MAX, 5'000);  // 10 Gbit/s, 100 ms
  EXPECT_EQ(outcome.window, k_window_max);
}

TEST(ReceiveWindow, StaysSmallForASlowReader) {
  const Outcome outcome = play(125'000, 1, 100, 10'000);
  EXPECT_EQ(outcome.window, k_window_first);
  EXPECT_NEAR(static_cast<double>(outcome.in_last_second), 100'000, 1'000);
}

TEST(ReceiveWindow, DoesNotGrowWhenItMayNot) {
  ReceiveWindow window;
  for (int now = 0; now < 1000; ++now) {
    ASSERT_TRUE(window.came(k_window_first));
    (void)window.taken(k_window_first, at(now * 3), path_of({1}), false);
  }
  EXPECT_EQ(window.size(), k_window_first);
}

TEST(RoundTrip, TakesTheShortestOfTheLastMinute) {
  RoundTrip path;
  EXPECT_FALSE(path.least());
  path.measured(milliseconds{40}, at(0));
  path.measured(milliseconds{90}, at(1000));
  EXPECT_EQ(path.least(), milliseconds{40});
  path.measured(milliseconds{80}, at(31'000));
  EXPECT_EQ(path.least(), milliseconds{40}) << "of the half minute before";
  path.measured(milliseconds{70}, at(62'000));
  EXPECT_EQ(path.least(), milliseconds{70}) << "the way has changed";
}

TEST(RoundTrip, SeesAQueueAndNoMereJitter) {
  EXPECT_FALSE(path_of({1, 4, 12, 3, 9}).is_queueing());
  EXPECT_TRUE(path_of({40, 120, 160, 160, 160}).is_queueing());
  EXPECT_FALSE(path_of({}).is_queueing());
}

}  // namespace
}  // namespace gridctl::wire::window_test
