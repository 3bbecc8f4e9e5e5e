// SPDX-License-Identifier: Apache-2.0
// Who may start, which refusal is a promise, and what a poll renews, on a host that is values.
#include <gmock/gmock.h>

#include "support/results.hpp"
#include "value_host.hpp"

namespace gridctl::agent::core_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::AttemptPhase;

class CoreTest : public ::testing::Test {
 protected:
  ValueHost host;
  Core core{host};

  static wire::StartRequest start_of(std::uint64_t epoch, const std::string& op = "op") {
    wire::StartRequest request;
    request.op = {op};
    request.echo = at(990);
    request.boot_id = "boot";
    request.lease = 60s;
    request.spec.job = {"j"};
    request.spec.epoch = Epoch{epoch};
    return request;
  }
  Result<wire::PollReply> poll(std::uint64_t epoch, Duration lease = 60s, BootTime echo = at(990),
                               std::uint64_t kept = 0) {
    wire::PollRequest request{echo, lease, {}};
    request.attempts.push_back({{"j"}, Epoch{epoch}, kept, {5s, 0s}, {}});
    return core.poll(request);
  }
  static Error full() { return make_error(Code::no_space, "full"); }
};

TEST(CheckLease, IsOneThatHasBegunAndNotEnded) {
  EXPECT_THAT(check_lease(at(990), 11s, at(1000)), IsOk());
  EXPECT_THAT(check_lease(at(990), 10s, at(1000)), FailsWith(Code::refused)) << "it ends at this moment";
  EXPECT_THAT(check_lease(at(1000), 1s, at(1000)), IsOk());
  EXPECT_THAT(check_lease({at(1000).ns + 1}, 1s, at(1000)), FailsWith(Code::refused)) << "of the future";
  EXPECT_THAT(check_lease({0}, 1h, at(1000)), FailsWith(Code::refused));
  EXPECT_THAT(check_lease({1}, 1h, at(1000)), IsOk());
  EXPECT_THAT(check_lease(at(1000), 0s, at(1000)), FailsWith(Code::refused));
  EXPECT_THAT(check_lease(at(1000), Duration{1}, at(1000)), IsOk());
  EXPECT_THAT(check_lease(at(1000), 24h * 366, at(1000)), IsOk());
  EXPECT_THAT(check_lease(at(1000), 24h * 366 + Duration{1}, at(1000)), FailsWith(Code::refused));
}

TEST_F(CoreTest, APrepareIsAnsweredOnlyAboveTheFence) {
  host.fences["j"] = Epoch{4};
  EXPECT_THAT(core.prepare({{"op"}, {"j"}, Epoch{4}}), FailsWith(Code::refused));
  const auto prepared = core.prepare({{"op"}, {"j"}, Epoch{5}});
  ASSERT_THAT(prepared, IsOk());
  EXPECT_EQ(prepared->host_time, at(1000));
  EXPECT_EQ(prepared->boot_id, "boot");
  EXPECT_THAT(host.done, IsEmpty()) << "nothing is promised yet";
}

TEST_F(CoreTest, AStartRaisesTheFenceBeforeAllElse) {
  const auto started = core.start(start_of(5));
  ASSERT_THAT(started, IsOk());
  EXPECT_FALSE(started->already);
  EXPECT_THAT(host.done, ElementsAre("fence 5", "lease 5", "create 5", "begin 5"));
}

TEST_F(CoreTest, TheSameStartAgainIsAcceptedAndAnotherIsNot) {
  ASSERT_THAT(core.start(start_of(5)), IsOk());
  host.done.clear();
  const auto again = core.start(start_of(5));
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->already);
  EXPECT_THAT(host.done, ElementsAre("adopt 5"));
  EXPECT_THAT(core.start(start_of(5, "other")), FailsWith(Code::refused));
  EXPECT_THAT(core.start(start_of(4)), FailsWith(Code::refused));
  EXPECT_THAT(host.done, ElementsAre("adopt 5"));
}

TEST_F(CoreTest, EachRefusalToStartIsAPromise) {
  auto other_boot = start_of(5);
  other_boot.boot_id = "earlier";
  EXPECT_THAT(core.start(other_boot), FailsWith(Code::refused));
  auto late = start_of(6);
  late.lease = 10s;
  EXPECT_THAT(core.start(late), FailsWith(Code::refused));
  host.refuses_check = make_error(Code::refused, "too much");
  EXPECT_THAT(core.start(start_of(7)), FailsWith(Code::refused));
  host.refuses_check.reset();
  host.refuses_lease = make_error(Code::busy, "held");
  EXPECT_THAT(core.start(start_of(8)), FailsWith(Code::busy));
  EXPECT_THAT(host.done, ElementsAre("fence 5", "fence 6", "fence 7", "fence 8", "release 8"))
      << "a claim that was not granted may be written all the same";
}

TEST_F(CoreTest, WhatCannotBeMadeGivesItsLeaseBackAndWhatWasMadeKeepsIt) {
  host.refuses_create = full();
  EXPECT_THAT(core.start(start_of(5)), FailsWith(Code::no_space));
  EXPECT_THAT(host.done, ElementsAre("fence 5", "lease 5", "release 5"));
  host.done.clear();
  host.refuses_create.reset();
  host.refuses_begin = full();
  EXPECT_THAT(core.start(start_of(6)), IsOk()) << "its folder is there: it will be adopted";
  EXPECT_THAT(host.done, ElementsAre("fence 6", "lease 6", "create 6"));
}

TEST_F(CoreTest, AnOlderAttemptThatLivesIsStoppedFirst) {
  host.add(3, AttemptPhase::ended);
  host.add(2, AttemptPhase::running, "earlier");
  host.add(4).grace = 7s;
  EXPECT_THAT(core.start(start_of(5)), FailsWith(Code::busy));
  EXPECT_THAT(host.done, ElementsAre("fence 5", "stop 4", "adopt 4"));
  EXPECT_EQ(host.all["j"][4].stop, Duration{7s}.count());
  host.done.clear();
  EXPECT_THAT(core.start(start_of(6)), FailsWith(Code::busy));
  EXPECT_THAT(host.done, ElementsAre("fence 6", "adopt 4")) << "it was told already";
  host.all["j"][4].stored.status.phase = AttemptPhase::ended;
  EXPECT_THAT(core.start(start_of(7)), IsOk());
}

TEST_F(CoreTest, AStopReachesAllUpToItsEpochAndOnlyShortensTheirGrace) {
  host.add(1, AttemptPhase::ended);
  host.add(2);
  host.add(3);
  host.add(4);
  ASSERT_THAT(core.stop({{"op"}, {"j"}, Epoch{3}, 5s}), IsOk());
  EXPECT_THAT(host.done, ElementsAre("stop 2", "adopt 2", "stop 3", "adopt 3"));
  EXPECT_EQ(host.all["j"][3].stop, Duration{5s}.count());
  host.done.clear();
  ASSERT_THAT(core.stop({{"op"}, {"j"}, Epoch{3}, 5s}), IsOk());
  ASSERT_THAT(core.stop({{"op"}, {"j"}, Epoch{3}, 6s}), IsOk());
  EXPECT_THAT(host.done, ElementsAre("adopt 2", "adopt 3", "adopt 2", "adopt 3"));
  ASSERT_THAT(core.stop({{"op"}, {"j"}, Epoch{2}, -1s}), IsOk());
  EXPECT_EQ(host.all["j"][2].stop, 0) << "no grace is less than none";
  ASSERT_THAT(core.stop({{"op"}, {"j"}, Epoch{9}, 5s}), IsOk());
  EXPECT_EQ(host.fences["j"], Epoch{9}) << "one that is still on its way is refused";
}

TEST_F(CoreTest, OnlyWhatHasEndedIsCleanedUp) {
  host.add(1, AttemptPhase::ended);
  host.add(2, AttemptPhase::ended);
  host.add(3);
  ASSERT_THAT(core.clean({{"op"}, {"j"}, Epoch{1}}), IsOk());
  EXPECT_THAT(host.done, ElementsAre("remove 1"));
  host.done.clear();
  EXPECT_THAT(core.clean({{"op"}, {"j"}, Epoch{3}}), FailsWith(Code::busy));
  EXPECT_THAT(host.done, ElementsAre("remove 2", "adopt 3"));
}

TEST_F(CoreTest, AnAttemptOfAnEarlierBootIsCleanedUpOnceItHasSettled) {
  host.add(3, AttemptPhase::running, "earlier");
  EXPECT_THAT(core.clean({{"op"}, {"j"}, Epoch{3}}), FailsWith(Code::busy));
  host.all["j"][3].settles = true;
  EXPECT_THAT(core.clean({{"op"}, {"j"}, Epoch{3}}), IsOk());
  EXPECT_THAT(host.all["j"], IsEmpty());
  host.add(4).settles = true;
  EXPECT_THAT(core.clean({{"op"}, {"j"}, Epoch{4}}), FailsWith(Code::busy)) << "of this boot, it lives";
}

TEST_F(CoreTest, WhatIsNotHereIsPromisedNeverToCome) {
  const auto reply = poll(5);
  ASSERT_THAT(reply, IsOk());
  ASSERT_THAT(reply->attempts, SizeIs(1));
  EXPECT_EQ(reply->attempts[0].phase, AttemptPhase::absent);
  EXPECT_EQ(reply->attempts[0].job.value, "j");
  EXPECT_EQ(reply->attempts[0].epoch, Epoch{5});
  EXPECT_EQ(reply->attempts[0].max_epoch, Epoch{5});
  EXPECT_EQ(host.fences["j"], Epoch{5});
}

TEST_F(CoreTest, APollRenewsForwardAndNeverAfterTheEnd) {
  ValueAttempt& one = host.add(5);
  one.deadline = at(1001).ns;
  ASSERT_THAT(poll(5), IsOk());
  EXPECT_EQ(one.deadline, at(1050).ns);
  EXPECT_THAT(host.done, ElementsAre("deadline 5", "adopt 5"));
  EXPECT_EQ(one.tempo, (wire::Tempo{5s, 0s}));
  ASSERT_THAT(poll(5, 59s), IsOk());
  ASSERT_THAT(poll(5, 60s), IsOk());
  EXPECT_EQ(one.deadline, at(1050).ns) << "never back";
  ASSERT_THAT(poll(5, 90s, at(1001)), IsOk());
  EXPECT_EQ(one.deadline, at(1050).ns) << "an echo of the future";
  host.time = at(1050);
  host.done.clear();
  ASSERT_THAT(poll(5, 600s), IsOk());
  EXPECT_EQ(one.deadline, at(1050).ns) << "it passes at this moment";
  EXPECT_THAT(host.done, ElementsAre("adopt 5"));
  one.deadline.reset();
  ASSERT_THAT(poll(5, 600s), IsOk());
  EXPECT_FALSE(one.deadline);
}

TEST_F(CoreTest, APollMovesWhatIsKeptOnlyForward) {
  ValueAttempt& one = host.add(5);
  ASSERT_THAT(poll(5, 60s, at(990), 0), IsOk());
  EXPECT_FALSE(one.kept_from);
  ASSERT_THAT(poll(5, 60s, at(990), 3), IsOk());
  EXPECT_EQ(one.kept_from, 3);
  host.done.clear();
  ASSERT_THAT(poll(5, 60s, at(990), 3), IsOk());
  ASSERT_THAT(poll(5, 60s, at(990), 2), IsOk());
  ASSERT_THAT(poll(5, 60s, at(990), INT64_MAX), IsOk());
  EXPECT_EQ(one.kept_from, 3);
  EXPECT_THAT(host.done, ElementsAre("adopt 5", "adopt 5", "adopt 5"));
}

TEST_F(CoreTest, AnAllowanceCountsOnlyFromATimeOfThisHost) {
  ValueAttempt& one = host.add(5);
  for (const auto& [echo, counts] : {std::pair{at(1001), false}, {BootTime{0}, false}, {at(990), true}}) {
    wire::PollRequest request{echo, 60s, {}};
    request.attempts.push_back({{"j"}, Epoch{5}, 0, {}, wire::Allowance{100s, "budget", {}}});
    ASSERT_THAT(core.poll(request), IsOk());
    EXPECT_EQ(one.limits.has_value(), counts) << echo.ns;
  }
  EXPECT_EQ(one.limits->run_until, at(1090)) << "from when it was sent on: the way here took ten seconds";
}

TEST_F(CoreTest, WhatEndedOrIsOfAnEarlierBootIsNotRenewed) {
  host.add(4, AttemptPhase::ended).deadline = at(1001).ns;
  host.add(5, AttemptPhase::running, "earlier").deadline = at(1001).ns;
  ASSERT_THAT(poll(4), IsOk());
  EXPECT_THAT(host.done, IsEmpty());
  ASSERT_THAT(poll(5), IsOk());
  EXPECT_THAT(host.done, ElementsAre("adopt 5"));
}

TEST_F(CoreTest, ARenewalThatFailsIsAnsweredAllTheSame) {
  host.add(5).deadline = at(1001).ns;
  host.refuses_deadline = full();
  const auto reply = poll(5);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->attempts[0].phase, AttemptPhase::running);
  EXPECT_THAT(host.done, ElementsAre("adopt 5"));
}

TEST_F(CoreTest, APollTellsOfTheOthersOnceAndOfNoMoreThanFit) {
  host.add(4, AttemptPhase::ended);
  host.add(5);
  const auto reply = poll(5);
  ASSERT_THAT(reply, IsOk());
  ASSERT_THAT(reply->attempts, SizeIs(2));
  EXPECT_EQ(reply->attempts[0].epoch, Epoch{5});
  EXPECT_EQ(reply->attempts[0].max_epoch, Epoch{5});
  EXPECT_EQ(reply->attempts[1].epoch, Epoch{4});
  EXPECT_EQ(reply->attempts[1].max_epoch, Epoch{5});
  for (std::uint64_t epoch = 6; epoch < 400; ++epoch) host.add(epoch, AttemptPhase::ended);
  EXPECT_THAT(poll(5)->attempts, SizeIs(256));
  wire::PollRequest many{at(990), 60s, {}};
  for (std::uint64_t epoch = 100; epoch < 356; ++epoch) many.attempts.push_back({{"j"}, Epoch{epoch}, 0, {}, {}});
  EXPECT_THAT(core.poll(many), IsOk());
  many.attempts.push_back({{"j"}, Epoch{399}, 0, {}, {}});
  EXPECT_THAT(core.poll(many), FailsWith(Code::refused));
}

}  // namespace
}  // namespace gridctl::agent::core_test
