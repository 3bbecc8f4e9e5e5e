// SPDX-License-Identifier: Apache-2.0
#include "lend/pace.hpp"

#include <gtest/gtest.h>

namespace gridctl::lend::pace_test {
namespace {

struct HandClock : os::Clock {
  BootTime now{1'000'000'000};
  [[nodiscard]] BootTime boot() const override { return now; }
  [[nodiscard]] WallTime wall() const override { return {now.ns / 1'000'000}; }
};

struct PaceTest : ::testing::Test {
  HandClock clock;
  std::optional<std::uint64_t> rate = 2'500'000;
  std::vector<std::pair<std::uint64_t, bool>> asked;
  Pace pace{[this](std::uint64_t used, bool held) {
              asked.emplace_back(used, held);
              return rate;
            },
            clock};
  // Sends as much as it may for so long; returns the bytes.
  std::size_t send_for(int ms) {
    std::size_t sent = 0;
    const BootTime until = clock.now + std::chrono::milliseconds{ms};
    while (clock.now < until) {
      const std::size_t now = pace.may_send(64 * 1024);
      pace.sent(now);
      sent += now;
      clock.now = now > 0 ? clock.now + std::chrono::microseconds{50} : pace.again().value();
    }
    return sent;
  }
};

TEST_F(PaceTest, SendsAtTheRateAndSaysWhenMoreMayGo) {
  send_for(500);
  EXPECT_NEAR(static_cast<double>(send_for(4000)), 10e6, 0.02 * 10e6);
  EXPECT_TRUE(asked.back().second);
  EXPECT_NEAR(static_cast<double>(asked.back().first), 2.5e6, 0.1e6);
}

TEST_F(PaceTest, LetsABurstOfAFifthOfASecondGoAfterAPause) {
  clock.now = clock.now + std::chrono::minutes{1};
  EXPECT_EQ(pace.may_send(1 << 20), 500'000u);
}

TEST_F(PaceTest, TakesAnotherRateWithinAQuarterOfASecond) {
  send_for(1000);
  rate = 250'000;
  send_for(300);
  EXPECT_NEAR(static_cast<double>(send_for(4000)), 1e6, 0.05e6);
  rate.reset();
  send_for(300);
  EXPECT_EQ(pace.may_send(1 << 20), 1u << 20);
  EXPECT_FALSE(pace.again());
}

TEST_F(PaceTest, SendsWhatIsLessThanAPacketAtOnce) {
  rate = 4096;
  send_for(2000);
  clock.now = clock.now + std::chrono::milliseconds{100};
  EXPECT_EQ(pace.may_send(300), 300u);
}

}  // namespace
}  // namespace gridctl::lend::pace_test
