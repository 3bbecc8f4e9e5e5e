// SPDX-License-Identifier: Apache-2.0
// The state machine with several members: all start or none does, one that is lost ends the attempt of all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"

namespace gridctl::job::state_gang_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

End exited(int rank, int code) { return {EndKind::exited, code, 0, "", rank}; }

class Gang : public Driver {
 public:
  explicit Gang(int size) : size_(size) { place_gang("h"); }
  void place_gang(const std::string& prefix) {
    std::vector<Member> members;
    for (int rank = 0; rank < size_; ++rank)
      members.push_back({rank, {prefix + std::to_string(rank)}, EngineKind::podman, {}, 1, 0, 0.5});
    happen(Placed{members, "fits"});
  }
  void each(auto event) {
    for (int rank = 0; rank < size_; ++rank) happen(event(rank));
  }
  void start() {
    each([&](int rank) { return MemberPrepared{state.epoch, rank}; });
    happen(MembersConnected{state.epoch, "1 GB/s", {}, 20000, "t"});
    each([&](int rank) { return LaunchAccepted{state.epoch, rank}; });
    each([&](int rank) { return PayloadStarted{state.epoch, rank}; });
  }

 private:
  int size_;
};

TEST(GangState, StartsNobodyBeforeAllAreReadyAndReachEachOther) {
  Gang job(2);
  EXPECT_THAT(job.due(), ElementsAre("prepare/1/0", "prepare/1/1"));
  job.happen(MemberPrepared{{1}, 1});
  EXPECT_THAT(job.due(), ElementsAre("prepare/1/0"));
  job.happen(MemberPrepared{{1}, 0});
  EXPECT_THAT(job.due(), ElementsAre("connect/1"));
  job.happen(MembersConnected{{1}, "1 GB/s", {}, 20000, "t"});
  EXPECT_THAT(job.due(), ElementsAre("launch/1/0", "launch/1/1"));
  job.happen(LaunchAccepted{{1}, 0});
  EXPECT_THAT(job.due(), ElementsAre("launch/1/1"));
  job.happen(PayloadStarted{{1}, 0});
  EXPECT_EQ(job.state.visible(), JobState::starting);
  job.happen(LaunchAccepted{{1}, 1});
  job.happen(PayloadStarted{{1}, 1});
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_EQ(job.state.price_per_hour(), 1.0);
}

TEST(GangState, ReleasesAllWhenOneIsRefused) {
  Gang job(3);
  job.happen(MemberPrepared{{1}, 0});
  job.happen(LaunchFailed{{1}, "no room", false, {}, EndKind::start_failed, true, 2});
  EXPECT_EQ(job.state.visible(), JobState::pending);
  EXPECT_THAT(job.due(), UnorderedElementsAre("place", "settle/1/h0", "settle/1/h1", "settle/1/h2"));
}

TEST(GangState, IsStoppedEverywhereBeforeAnotherEpochWhenOneIsRefusedAtTheStart) {
  Gang job(3);
  job.each([&](int rank) { return MemberPrepared{job.state.epoch, rank}; });
  job.happen(MembersConnected{{1}, "1 GB/s", {}, 20000, "t"});
  job.happen(LaunchAccepted{{1}, 0});
  job.happen(LaunchFailed{{1}, "no room", false, {}, EndKind::start_failed, false, 1});
  EXPECT_THAT(job.due(), UnorderedElementsAre("stop/1/0", "stop/1/2"));
  job.happen(AttemptEnded{{1}, {EndKind::absent, -1, 0, "", 2}});
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 0}});
  job.happen(Collected{{1}, "", 0});
  EXPECT_EQ(job.state.visible(), JobState::pending) << "nobody's fault: it has lost nothing";
  EXPECT_EQ(job.state.reason, "not_started");
  EXPECT_TRUE(job.state.avoided.empty());
  EXPECT_THAT(job.due(), UnorderedElementsAre("place", "settle/1/h0", "settle/1/h1", "settle/1/h2"));
}

TEST(GangState, BlamesTheHostThatRefusesAtTheStartWhenAllHaveEnded) {
  Gang job(2);
  job.each([&](int rank) { return MemberPrepared{job.state.epoch, rank}; });
  job.happen(MembersConnected{{1}, "1 GB/s", {}, 20000, "t"});
  job.happen(LaunchFailed{{1}, "broken engine", true, {}, EndKind::start_failed, false, 1});
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  job.happen(AttemptEnded{{1}, {EndKind::absent, -1, 0, "", 0}});
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_EQ(job.state.reason, "start_failed");
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided[0].host.value, "h1");
}

TEST(GangState, BlamesTheHostOfTheMemberThatCouldNotStart) {
  Gang job(2);
  job.happen(LaunchFailed{{1}, "broken engine", true, {}, EndKind::start_failed, false, 1});
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided[0].host.value, "h1");
}

// One bad host among many is no proof against the job, and a set-up that never works ends it all the same.
TEST(GangState, FailsWhenItCouldNotBeStartedAsOftenForEachMemberAsAJobOnOneHost) {
  for (const auto& [size, most] : {std::pair{2, 10}, {4, 20}, {8, 20}}) {
    Gang job(size);
    for (int tries = 1; tries <= most; ++tries) {
      ASSERT_FALSE(is_final(job.state.visible())) << size << " members, " << tries;
      if (tries > 1) job.place_gang("h");
      job.happen(LaunchFailed{job.state.epoch, "broken engine", true, {}, EndKind::start_failed, false, 1});
    }
    EXPECT_EQ(job.state.visible(), JobState::failed) << size;
    EXPECT_THAT(job.state.reason_text, ::testing::HasSubstr("could not be started " + std::to_string(most) + " times in a row"));
  }
}

TEST(GangState, SucceedsWhenTheLastMemberHas) {
  Gang job(2);
  job.start();
  job.happen(AttemptEnded{{1}, exited(1, 0)});
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_THAT(job.due(), ElementsAre());
  job.happen(AttemptEnded{{1}, exited(0, 0)});
  EXPECT_THAT(job.due(), ElementsAre("collect/1/0", "collect/1/1"));
  job.happen(Collected{{1}, "", 1});
  EXPECT_FALSE(is_final(job.state.visible()));
  job.happen(Collected{{1}, "", 0});
  EXPECT_EQ(job.state.visible(), JobState::succeeded);
  EXPECT_THAT(job.due(), UnorderedElementsAre("settle/1/h0", "settle/1/h1"));
}

TEST(GangState, StopsTheOthersAtOnceWhenOneHostIsLostAndStartsAllAnew) {
  Gang job(3);
  job.start();
  job.happen(CheckpointCommitted{{1}, {1}, "", 1});
  job.happen(HostLost{{1}, std::chrono::seconds{10}, 1});
  EXPECT_THAT(job.due(), UnorderedElementsAre("stop/1/0", "stop/1/2", "settle/1/h1"));
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 0}});
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 2}});
  EXPECT_THAT(job.due(), UnorderedElementsAre("collect/1/0", "collect/1/2", "settle/1/h1"));
  job.happen(Collected{{1}, "", 0});
  job.happen(Collected{{1}, "", 2});
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_EQ(job.state.reason, "host_lost");
  EXPECT_TRUE(job.state.failures.empty());
  int stale = 0;
  for (const PendingCleanup& end : job.state.pending_cleanups) stale += end.stale ? 1 : 0;
  EXPECT_EQ(stale, 1);
  job.place_gang("k");
  EXPECT_EQ(job.state.epoch.value, 2u);
  EXPECT_EQ(job.state.attempt()->resumed_from.value, 1u);
}

TEST(GangState, BeginsAnewWithMoreHostsAfterACheckpointAndChargesNobody) {
  Gang job(2);
  job.start();
  job.happen(MoveRequested{{1}, std::string(k_to_grow), 4, {}, "3 hosts instead of 2 save 5m"});
  EXPECT_THAT(job.state.reason_text, ::testing::HasSubstr("more hosts are available for it: the job restarts with them when"));
  job.happen(CheckpointCommitted{{1}, {1}, "", 5});
  job.happen(MoveDue{{1}});
  EXPECT_THAT(job.due(), UnorderedElementsAre("stop/1/0", "stop/1/1"));
  job.happen(AttemptEnded{{1}, exited(0, 1)});  // rank 1 was stopped a moment before: "connection reset by peer"
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 1}});
  job.happen(Collected{{1}, "", 0});
  job.happen(Collected{{1}, "", 1});
  EXPECT_EQ(job.state.reason, "grown");
  EXPECT_TRUE(job.state.failures.empty());
  EXPECT_TRUE(job.state.avoided.empty());
  EXPECT_THAT(job.due(), ::testing::Contains("place"));
}

TEST(GangState, GivesHostsAnotherTryWhenItGrowsAfterAnHour) {
  for (const bool later : {false, true}) {
    Gang job(2);
    job.happen(LaunchFailed{{1}, "broken engine", true, {}, EndKind::start_failed, false, 1});
    job.place_gang("k");
    job.start();
    ASSERT_EQ(job.state.avoided.size(), 1u);
    if (later) job.advance(3'600'000);
    job.happen(CheckpointCommitted{job.state.epoch, {1}, "", 1});
    job.happen(MoveRequested{job.state.epoch, std::string(k_to_grow), 1});
    job.happen(CheckpointCommitted{job.state.epoch, {2}, "", 2});
    job.happen(MoveDue{job.state.epoch});
    EXPECT_EQ(job.state.avoided.empty(), later);
  }
}

TEST(GangState, HasNotSucceededWhenAMemberWasStoppedByOurOrder) {
  Gang job(2);
  job.start();
  job.happen(CancelRequested{std::chrono::seconds{1}});
  job.happen(AttemptEnded{{1}, exited(0, 0)});
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 1}});
  job.happen(Collected{{1}, "", 0});
  job.happen(Collected{{1}, "", 1});
  EXPECT_EQ(job.state.visible(), JobState::cancelled);
}

TEST(GangState, AStragglerDoesNotGetItsPartBack) {
  Gang job(2);
  job.start();
  job.happen(MoveRequested{{1}, std::string(k_for_straggler), 0, {}, "", 0, {"h1"}});
  job.happen(CheckpointCommitted{{1}, {1}, "", 1});
  job.happen(MoveDue{{1}});
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided[0].host.value, "h1");
}

TEST(GangState, AStoredStartKeepsThePortAndTheTokenOfItsMembers) {
  Gang job(2);
  job.each([&](int rank) { return MemberPrepared{job.state.epoch, rank}; });
  job.happen(MembersConnected{{1}, "1 GB/s", {}, 20000, "t"});
  const Result<State> read = parse_state(to_json(job.state));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Launching>(read->phase).port, 20000);
  EXPECT_EQ(std::get<Launching>(read->phase).token, "t");
}

TEST(GangState, DoesNotChargeTheProgramForAPeersHost) {
  Gang job(2);
  job.start();
  job.happen(AttemptEnded{{1}, exited(0, 1)});  // "connection reset by peer"
  EXPECT_THAT(job.due(), ElementsAre("stop/1/1"));
  EXPECT_EQ(job.state.reason, "gang_broken");
  job.happen(HostLost{{1}, std::chrono::seconds{10}, 1});
  job.happen(Collected{{1}, "", 0});
  EXPECT_EQ(job.state.reason, "host_lost");
  EXPECT_TRUE(job.state.failures.empty());
}

TEST(GangState, BeginsAnewWhenItHangsWhileItIsAskedToLeave) {
  Gang job(2);
  job.start();
  job.happen(MoveRequested{{1}, std::string(k_for_priority)});
  job.happen(Hung{{1}, "no progress for 61 s"});
  EXPECT_THAT(job.due(), ::testing::IsSupersetOf({"stop/1/0", "stop/1/1"})) << "what it is to save first would never come";
}

TEST(GangState, BeginsAnewWhenItHangsAndNotForEver) {
  Gang job(2);
  job.state.policy.max_failures = 2;
  for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
    job.start();
    job.happen(Hung{{epoch}, "no progress for 61 s"});
    const std::string stop = "stop/" + std::to_string(epoch);
    EXPECT_THAT(job.due(), ::testing::IsSupersetOf({stop + "/0", stop + "/1"}));
    job.each([&](int rank) { return AttemptEnded{{epoch}, {EndKind::stopped, -1, 0, "", rank}}; });
    job.each([&](int rank) { return Collected{{epoch}, "", rank}; });
    EXPECT_TRUE(job.state.avoided.empty()) << "nobody knows which host is to blame";
    EXPECT_EQ(job.state.reason, "hung");
    if (epoch == 1) {
      EXPECT_EQ(job.state.visible(), JobState::recovering);
      job.place_gang("k");
    }
  }
  EXPECT_EQ(job.state.visible(), JobState::failed);
}

TEST(GangState, ChargesTheProgramThatFailsByItself) {
  Gang job(2);
  job.start();
  job.happen(AttemptEnded{{1}, exited(1, 3)});
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 0}});
  job.each([&](int rank) { return Collected{{1}, "", rank}; });
  EXPECT_EQ(job.state.reason, "program_failed");
  ASSERT_EQ(job.state.failures.size(), 1u);
  EXPECT_EQ(job.state.failures[0].host.value, "h1");
  EXPECT_EQ(job.state.failures[0].exit_code, 3);
}

TEST(GangState, IsCancelledOnAllHosts) {
  Gang job(2);
  job.start();
  job.happen(CancelRequested{std::chrono::seconds{5}});
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0", "stop/1/1"));
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 1}});
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 0}});
  job.each([&](int rank) { return Collected{{1}, "", rank}; });
  EXPECT_EQ(job.state.visible(), JobState::cancelled);
}

TEST(GangState, IsReadBackAsItWasStored) {
  Gang job(2);
  job.happen(MemberPrepared{{1}, 1});
  EXPECT_EQ(parse_state(to_json(job.state)).value(), job.state);
  job.start();
  job.happen(HostLost{{1}, std::chrono::seconds{10}, 1});
  EXPECT_EQ(parse_state(to_json(job.state)).value(), job.state);
}

TEST(GangState, ReadsWhatWasStoredBeforeMembersHadParts) {
  Driver job;
  job.run_on("a");
  std::string text = to_json(job.state);
  for (const std::string part :
       {R"(,"part":"running")", R"("part":"running",)", R"("end":null,)", R"("doing":"",)", R"("address":"",)"})
    for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  EXPECT_EQ(text.find("\"part\""), std::string::npos);
  EXPECT_EQ(parse_state(text).value(), job.state);
}

TEST(GangState, NamesItsHosts) {
  EXPECT_EQ(Gang(1).state.attempt()->where(), "h0");
  EXPECT_EQ(Gang(2).state.attempt()->where(), "h0 and h1");
  EXPECT_EQ(Gang(3).state.attempt()->where(), "h0, h1 and h2");
  EXPECT_EQ(Gang(5).state.attempt()->where(), "h0, h1 and 3 more hosts");
}

}  // namespace
}  // namespace gridctl::job::state_gang_test
