// SPDX-License-Identifier: Apache-2.0
#include "agent/announced.hpp"
#include "agent/host_limits.hpp"

#include <gtest/gtest.h>

#include "agent/stop_clock.hpp"

namespace gridctl::agent::host_limits_test {
namespace {
using namespace std::chrono_literals;

BootTime at(std::int64_t s) { return {s * 1'000'000'000}; }

TEST(HostLimits, CountRunningFromWhenTheProgramRuns) {
  const HostLimits limits = limits_at_start({60s, "max_duration", {}}, at(100));
  EXPECT_FALSE(due_of(limits, std::nullopt)) << "setup may take as long as it likes";
  EXPECT_EQ(due_of(limits, at(500)), (LimitDue{at(560), "max_duration"}));
  EXPECT_EQ(allowed_ms(limits, std::nullopt, at(300)), 60'000);
  EXPECT_EQ(allowed_ms(limits, at(500), at(530)), 30'000);
  EXPECT_EQ(allowed_ms(limits, at(500), at(600)), 0);
}

TEST(HostLimits, ARenewalCountsFromTheTimeThatItEchoes) {
  const HostLimits limits = limits_from({60s, "budget", {}}, at(100));
  EXPECT_EQ(due_of(limits, at(10)), (LimitDue{at(160), "budget"}));
}

TEST(HostLimits, TheEarlierOneCounts) {
  EXPECT_EQ(due_of(limits_from({60s, "budget", 30s}, at(100)), at(10)), (LimitDue{at(130), "deadline"}));
  EXPECT_EQ(due_of(limits_from({20s, "budget", 30s}, at(100)), at(10)), (LimitDue{at(120), "budget"}));
  EXPECT_EQ(due_of(limits_at_start({60s, "budget", 30s}, at(100)), std::nullopt), (LimitDue{at(130), "deadline"}));
  EXPECT_FALSE(due_of(limits_from({}, at(100)), at(10)));
  EXPECT_EQ(allowed_ms(limits_from({}, at(100)), at(10), at(20)), -1);
}

TEST(HostLimits, OfTwoAtTheSameInstantRunningIsNamed) {
  EXPECT_EQ(due_of(limits_from({30s, "budget", 30s}, at(100)), at(10)), (LimitDue{at(130), "budget"}));
}

TEST(HostLimits, ThatLieFarAwayOverflowNothing) {
  const HostLimits far = limits_from({Duration::max(), "budget", Duration::max()}, at(100));
  EXPECT_GT(far.run_until->ns, at(1'000'000'000).ns);
  EXPECT_GT(far.time_until->ns, at(1'000'000'000).ns);
  EXPECT_GT(allowed_ms(far, at(10), at(20)), 0);
  EXPECT_GT(due_of(limits_at_start({Duration::max(), "budget", {}}, at(1)), at(10))->at.ns, at(1'000'000'000).ns);
}

TEST(HostLimits, AreStoredAsTheyAre) {
  for (const HostLimits& limits :
       {HostLimits{}, limits_from({60s, "budget", 30s}, at(100)), limits_at_start({60s, "month_budget", {}}, at(100)),
        limits_from({Duration::max(), "budget", {}}, at(100))})
    EXPECT_EQ(parse_limits(to_text(limits)), limits);
  for (const char* text : {"", "1 2 3", "x - - -", "1 - - - -", "99999999999999999999 - - -"})
    EXPECT_FALSE(parse_limits(text)) << text;
}

TEST(HostLimits, WhatMessagesTakeOnTheirWayIsNoNews) {
  const HostLimits one = limits_from({60s, "budget", 30s}, at(100));
  EXPECT_TRUE(nearly_equal(one, limits_from({60s + 10ms, "budget", 30s}, at(100))));
  EXPECT_FALSE(nearly_equal(one, limits_from({61s, "budget", 30s}, at(100))));
  EXPECT_FALSE(nearly_equal(one, limits_from({60s, "month_budget", 30s}, at(100))));
  EXPECT_FALSE(nearly_equal(one, limits_from({60s, "budget", {}}, at(100))));
  EXPECT_FALSE(nearly_equal(one, limits_from({60s, "budget", 31s}, at(100))));
  EXPECT_TRUE(nearly_equal(one, limits_from({60s - 49ms, "budget", 30s + 49ms}, at(100))));
  EXPECT_FALSE(nearly_equal(one, limits_from({60s + 50ms, "budget", 30s}, at(100))));
  EXPECT_FALSE(nearly_equal(one, limits_from({60s - 50ms, "budget", 30s}, at(100))));
  EXPECT_TRUE(nearly_equal({}, {}));
  EXPECT_FALSE(nearly_equal(limits_at_start({60s, "budget", {}}, at(100)), limits_at_start({61s, "budget", {}}, at(100))));
}

TEST(StopClock, EndsWhatHasReachedItsLimitWithItsWholeGrace) {
  StopClock clock;
  clock.set_deadline(at(1000));
  clock.set_limit(at(50));
  EXPECT_EQ(clock.due(at(10)), at(50));
  EXPECT_EQ(clock.exhaust(30s, at(49)), StopStep::none);
  EXPECT_EQ(clock.exhaust(30s, at(70)), StopStep::terminate) << "a host that slept past it lets it save all the same";
  EXPECT_EQ(clock.reason(), wire::EndReason::limit);
  EXPECT_EQ(clock.due(at(71)), at(100));
  EXPECT_TRUE(clock.kill_now(at(100)));
  clock.set_limit(std::nullopt);
  EXPECT_TRUE(clock.is_stopping());
}

TEST(StopClock, ALimitMayBeMovedWhileItIsAhead) {
  StopClock clock;
  clock.set_deadline(at(1000));
  clock.set_limit(at(50));
  clock.set_limit(at(80));
  EXPECT_EQ(clock.exhaust(30s, at(60)), StopStep::none);
  clock.set_limit(at(2000));
  EXPECT_EQ(clock.due(at(60)), at(1000)) << "the lease ends first";
}

TEST(StopClock, WarnsBeforeItTerminates) {
  StopClock clock;
  clock.set_deadline(at(1000));
  EXPECT_EQ(clock.order(wire::EndReason::stopped, 20s, at(100), true), StopStep::warn);
  EXPECT_EQ(clock.due(at(100)), at(115));
  EXPECT_FALSE(clock.terminate_now(at(114)));
  EXPECT_TRUE(clock.terminate_now(at(115)));
  EXPECT_FALSE(clock.terminate_now(at(116))) << "once";
  EXPECT_EQ(clock.due(at(116)), at(120));
  EXPECT_TRUE(clock.kill_now(at(120)));
}

TEST(StopClock, AShorterGraceShortensTheWarning) {
  StopClock clock;
  EXPECT_EQ(clock.order(wire::EndReason::stopped, 120s, at(100), true), StopStep::warn);
  EXPECT_EQ(clock.due(at(100)), at(210)) << "ten seconds are enough after TERM";
  EXPECT_EQ(clock.order(wire::EndReason::stopped, 4s, at(101), true), StopStep::none);
  EXPECT_EQ(clock.due(at(101)), at(104));
  StopClock other;
  EXPECT_EQ(other.order(wire::EndReason::stopped, 0s, at(100), true), StopStep::wait) << "there is no time to save";
}

TEST(Announced, ReadsTheShutdownsOfLogind) {
  EXPECT_EQ(parse_scheduled_shutdown("USEC=1790000000000000\nWARN_WALL=1\nMODE=poweroff\n"), WallTime{1790000000000});
  EXPECT_EQ(parse_scheduled_shutdown("MODE=reboot\nUSEC=5000\n"), WallTime{5});
  for (const char* none : {"", "MODE=reboot\n", "USEC=12\n", "USEC=x\nMODE=reboot", "USEC=1790000000000000\nMODE=dry-reboot\n", "USEC=-4\nMODE=halt\n"})
    EXPECT_EQ(parse_scheduled_shutdown(none), std::nullopt) << none;
}

}  // namespace
}  // namespace gridctl::agent::host_limits_test
