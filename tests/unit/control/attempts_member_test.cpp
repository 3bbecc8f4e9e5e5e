// SPDX-License-Identifier: Apache-2.0
// What happens to one member of a gang, with the first, the one in the middle, and the last.
#include "control/fleet/fleet.hpp"
#include "gang_on_hosts.hpp"

namespace gridctl::control::attempts_member_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::Fate, gridctl::testing::IsOk, gridctl::testing::Point;
using testing::tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<std::string> k_hosts{"ada", "bob", "eve"};

struct EachMember : GangOnHosts, ::testing::WithParamInterface<int> {
  [[nodiscard]] int rank() const { return GetParam(); }
  [[nodiscard]] std::string its() const { return k_hosts[static_cast<std::size_t>(GetParam())]; }
  [[nodiscard]] std::vector<std::string> others() const {
    std::vector<std::string> names = k_hosts;
    std::erase(names, its());
    return names;
  }
  void fails(const std::string& name, int code) {
    says(name, wire::AttemptPhase::ended, 0, [&](wire::AttemptStatus& status) {
      status.end = wire::EndReason::exited;
      status.exit_code = code;
    });
  }
  void others_are_stopped() {
    for (const std::string& other : others())
      says(other, wire::AttemptPhase::ended, 0, [](wire::AttemptStatus& status) { status.end = wire::EndReason::stopped; });
    later(1s);
  }
};

TEST_P(EachMember, ThatFailsEndsTheGangByItsOwnWords) {
  runs();
  for (int one = 0; one < 3; ++one)
    ASSERT_THAT(folders.log_append({"gang"}, {1}, one, 0, "words of " + k_hosts[static_cast<std::size_t>(one)] + "\n"), IsOk());
  fails(its(), 3);
  EXPECT_NE(job("gang").in<job::Stopping>(), nullptr);
  EXPECT_EQ(std::count(script.asked.begin(), script.asked.end(), "stop"), 2) << "it has ended itself";
  others_are_stopped();
  ASSERT_THAT(state().failures, SizeIs(1));
  EXPECT_EQ(state().failures[0].host.value, its());
  EXPECT_EQ(state().failures[0].exit_code, 3);
  EXPECT_THAT(state().failures[0].last, HasSubstr("words of " + its()));
  EXPECT_THAT(told("last_output"), ElementsAre("words of " + its()));
  EXPECT_THAT(told("gang_broken"), ElementsAre(HasSubstr("rank " + std::to_string(rank()) + " on " + its())));
}

TEST_P(EachMember, WhoseHostIsLostLeavesAPendingCleanupThereAndIsTheReason) {
  runs();
  book.apply({"gang"}, job::HostLost{state().epoch, 90s, rank()});
  run.settle();
  others_are_stopped();
  EXPECT_EQ(state().reason, "host_lost");
  ASSERT_FALSE(state().pending_cleanups.empty());
  EXPECT_THAT(told("host_lost"), Contains(HasSubstr(its() + " was given up")));
  for (const job::PendingCleanup& end : state().pending_cleanups) EXPECT_EQ(end.stale, end.host.value == its());
}

TEST_P(EachMember, ThatSavesLastMakesTheCheckpointWhole) {
  runs();
  merges_to(50, {3, 3, 3});
  for (const std::string& other : others()) says(other, wire::AttemptPhase::running, 3);
  EXPECT_THAT(*registry.checkpoints({"gang"}), IsEmpty());
  says(its(), wire::AttemptPhase::running, 3);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  ASSERT_THAT(bulk.parts, SizeIs(3));
  for (std::size_t one = 0; one < 3; ++one) {
    EXPECT_EQ(bulk.parts[one][0].member, k_hosts[one]);
    EXPECT_EQ(bulk.parts[one][0].first_rank, one);
    EXPECT_FALSE(bulk.parts[one][0].nothing);
  }
}

TEST_P(EachMember, WhosePartIsNewerMakesANewCheckpoint) {
  runs();
  merges_to(50, {3, 3, 3});
  for (const std::string& name : k_hosts) says(name, wire::AttemptPhase::running, 3);
  std::vector<std::uint64_t> numbers{3, 3, 3};
  numbers[static_cast<std::size_t>(rank())] = 4;
  merges_to(51, numbers);
  says(its(), wire::AttemptPhase::running, 4);
  const auto kept = *registry.checkpoints({"gang"});
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_EQ(kept[1].root, tree(51));
  EXPECT_EQ(kept[1].host_number, 10u);
  for (std::size_t one = 0; one < 3; ++one) {
    const auto& wants = host(k_hosts[one]).use.wants;
    ASSERT_THAT(wants, SizeIs(1));
    EXPECT_EQ(wants[0].attempt.checkpoints_kept_from, numbers[one]) << "each host keeps from its own number on";
  }
}

TEST_P(EachMember, IsToldOfTheJobsLimitsAndLease) {
  placed([](job::Spec& spec) {
    spec.max_duration = 1h;
    spec.recovery.lease = 3h;
    spec.recovery.lost_after = 24s;
  });
  for (const std::string& name : k_hosts) says(name, wire::AttemptPhase::running);
  const HostUse& use = host(its()).use;
  ASSERT_THAT(use.wants, SizeIs(1));
  EXPECT_EQ(use.wants[0].lease, 3h);
  ASSERT_TRUE(use.wants[0].limits);
  EXPECT_EQ(use.wants[0].limits->run_limit, "max_duration");
  EXPECT_EQ(use.patience, 24s);
}

TEST_P(EachMember, ThatCannotStartIsTheReasonAndTheOthersAreCleanedUp) {
  const std::string name = its();
  bulk.fails_reaching = [name](const HostReach& reach) -> std::optional<Error> {
    if (reach.provider.name.value != name) return std::nullopt;
    return make_error(Code::refused, "not this one");
  };
  placed();
  EXPECT_EQ(job("gang").in<job::Running>(), nullptr);
  EXPECT_EQ(std::count(script.asked.begin(), script.asked.end(), "start"), 0) << "none begins before all are ready";
}

TEST_P(EachMember, WhoseStartIsInDoubtIsWaitedForByTheNextDaemon) {
  script.replies["start"] = {make_error(Code::timed_out, "silence")};
  placed();
  ASSERT_NE(job("gang").in<job::Launching>(), nullptr);
  bulk.fails_reaching = [name = its()](const HostReach& reach) -> std::optional<Error> {
    if (reach.provider.name.value != name) return std::nullopt;
    return make_error(Code::host_unreachable, "no route");
  };
  JobBook again(world());
  Attempts next(world(), again, fleet(), pacer);
  again.refresh();
  run.settle();
  EXPECT_NE(again.find({"gang"})->in<job::Launching>(), nullptr) << "it may run there";
  EXPECT_THAT(told("launch_failed"), IsEmpty());
}

TEST_P(EachMember, WhoseAcceptedStartCouldNotBeWrittenDownIsAskedForAgain) {
  int starts = 0;
  records.passing = [&](Point point) {
    const auto asked = static_cast<int>(std::count(script.asked.begin(), script.asked.end(), "start"));
    if (point == Point::records_apply && asked > starts && (starts = asked) == rank() + 1) records.fates[point] = {Fate::fails};
  };
  placed();
  ASSERT_NE(job("gang").in<job::Launching>(), nullptr);
  bulk.no_way = make_error(Code::host_unreachable, "no route");
  for (int i = 0; i < 5; ++i) later(1s), (void)book.refresh();
  EXPECT_NE(job("gang").in<job::Launching>(), nullptr) << "it runs there: its host has accepted it";
  EXPECT_THAT(told("launch_failed"), IsEmpty());
}

TEST_P(EachMember, ThatWasCollectedByADaemonBeforeIsPartOfTheLastCheckpointAllTheSame) {
  runs();
  bulk.fails_reaching = [name = its()](const HostReach& reach) -> std::optional<Error> {
    if (reach.provider.name.value == name) return std::nullopt;
    return make_error(Code::host_unreachable, "no route");
  };
  all_end();
  ASSERT_NE(job("gang").in<job::Collecting>(), nullptr);
  ASSERT_EQ(state().attempt()->member(rank())->part, job::Part::collected);
  bulk.fails_reaching = {};
  merges_to(50, {5, 5, 5});
  JobBook again(world());
  Attempts next(world(), again, fleet(), pacer);
  again.refresh();
  run.settle();
  EXPECT_EQ(again.find({"gang"})->state().visible(), job::JobState::succeeded);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  for (const auto& parts : bulk.parts) EXPECT_FALSE(parts[0].nothing);
}

TEST_P(EachMember, SaysItsOwnWords) {
  runs();
  wire::LogRequest asked{{"gang"}, state().epoch, 0, 1000};
  static_cast<FleetListener&>(attempts).logged(host(its()), asked, 0, "mine\n");
  for (int one = 0; one < 3; ++one) {
    EXPECT_EQ(folders.log_tail({"gang"}, {1}, one, 10).value_or(std::string()), one == rank() ? "mine" : "") << one;
  }
}

// What it has used is not counted before each host has said since when it runs.
TEST_P(EachMember, IsHeardBeforeAnythingIsCounted) {
  runs();
  JobBook again(world());  // of a daemon that has just begun
  Attempts fresh(world(), again, fleet(), pacer);
  again.refresh();
  const auto says_to_it = [&](const std::string& name) {
    wire::PollReply reply;
    reply.attempts.emplace_back();
    reply.attempts[0].job = {"gang"};
    reply.attempts[0].epoch = state().epoch;
    reply.attempts[0].phase = wire::AttemptPhase::running;
    static_cast<FleetListener&>(fresh).polled(host(name), reply);
  };
  for (const std::string& other : others()) says_to_it(other);
  EXPECT_FALSE(fresh.is_counted(*again.find({"gang"})));
  says_to_it(its());
  EXPECT_TRUE(fresh.is_counted(*again.find({"gang"})));
}

INSTANTIATE_TEST_SUITE_P(Ranks, EachMember, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace gridctl::control::attempts_member_test
