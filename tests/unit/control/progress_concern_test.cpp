// SPDX-License-Identifier: Apache-2.0
// Gangs that hang, and hosts that slow their gang down: what the concern asks of hosts, tells and does.
#include "control/concerns/table.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"
#include "wire/insight.hpp"

namespace gridctl::control::progress_concern_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A gang on ada and bob, which are connected.
class GangProgress : public testing::FollowedJobs {
 protected:
  GangProgress() {
    add("ada");
    add("bob");
    tick();
    EXPECT_TRUE(host("ada").is_up() && host("bob").is_up());
    bulk.script.answers("stacks");
    bulk.script.more["stacks"] = {{wire::FrameKind::data, 0, "in recv()"},
                                  {wire::FrameKind::end, 0, wire::encode(wire::EndRecord{9, {}})}};
  }
  [[nodiscard]] World world() { return {clock, run, net, registry, bulk, folders}; }
  Concern& concern() {
    if (concern_ == nullptr) {
      placement_.emplace(world(), book, fleet());
      attempts_.emplace(world(), book, fleet(), *placement_);
      mover_.emplace(world(), book, fleet(), *attempts_, *placement_);
      concern_ = make_progress({world(), fleet(), book, *attempts_, *placement_, *mover_});
    }
    return *concern_;
  }
  FleetListener& listener() { return dynamic_cast<FleetListener&>(concern()); }
  void begin(const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}) {
    concern();
    submit("gang", [&](job::Spec& spec) {
      spec.num_nodes = 2;
      shape(spec);
    });
    const auto member = [](int rank, const char* host) { return job::Member{rank, {host}, EngineKind::process, {}, 1, 0, 0}; };
    book.apply({"gang"}, job::Placed{{member(0, "ada"), member(1, "bob")}, "both"});
    for (const int rank : {0, 1}) book.apply({"gang"}, job::PayloadStarted{gang().epoch, rank});
    ASSERT_EQ(job("gang").row.machine.visible(), job::JobState::running);
    run.settle();
  }
  const job::State& gang() { return job("gang").state(); }
  // A host says that so much output is there.
  void says(const std::string& name, std::uint64_t log_bytes, const std::function<void(wire::AttemptStatus&)>& change = [](auto&) {}) {
    wire::AttemptStatus status;
    status.job = {"gang"};
    status.epoch = gang().epoch;
    status.phase = wire::AttemptPhase::running;
    status.log_bytes = log_bytes;
    change(status);
    said[name] = status;
    answers(name);
  }
  void answers(const std::string& name) {
    if (std::as_const(book).find({"gang"}) == nullptr) return;
    wire::AttemptStatus status = said[name];
    if (status.job.value.empty()) status.job = {"gang"}, status.epoch = gang().epoch, status.phase = wire::AttemptPhase::running;
    wire::PollReply reply;
    reply.attempts = {status};
    listener().polled(host(name), reply);
  }
  // Both hosts answer all the while.
  void look(Duration later = {}) {
    do {
      const Duration step = std::min<Duration>(later, 5s);
      clock.pass(step);
      later -= step;
      for (const char* name : {"ada", "bob"}) answers(name);
    } while (later > Duration{});
    concern().tick(clock.boot());
    run.settle();
  }
  // A line each second, until nobody doubts how often there is one.
  void works() {
    for (int i = 0; i < 30; ++i) {
      clock.pass(1s);
      says("ada", ++lines);
    }
  }
  std::vector<std::string> told(const std::string& kind) {
    std::vector<std::string> texts;
    for (const auto events = *registry.events({"gang"}, 0, 0); const registry::EventRecord& event : events)
      if (event.kind == kind) texts.push_back(event.host.value + ": " + event.text);
    return texts;
  }
  int asked(const std::string& name) {
    return static_cast<int>(std::count(bulk.script.asked.begin(), bulk.script.asked.end(), name));
  }
  // Both hosts tell step `step` of their rank, and how long they computed.
  void steps(std::int64_t step, std::optional<double> ada, std::optional<double> bob) {
    bulk.script.replies["steps"] = {};
    bulk.script.answers("steps", wire::encode(wire::StepsReply{{{0, step, ada}}, 0}));
    bulk.script.answers("steps", wire::encode(wire::StepsReply{{{1, step, bob}}, 0}));
    look(15s);
  }

  testing::ScriptedFreight bulk;
  std::uint64_t lines = 0;
  std::map<std::string, wire::AttemptStatus> said;
  std::optional<Placement> placement_;
  std::optional<Attempts> attempts_;
  std::optional<Mover> mover_;
  std::unique_ptr<Concern> concern_;
};

TEST_F(GangProgress, ThatStopsIsShownAndBegunAnew) {
  begin();
  works();
  look(30s);
  EXPECT_EQ(asked("stacks"), 0) << "it may take thrice as long as usual, and half a minute in any case";
  look(1s);
  EXPECT_EQ(asked("stacks"), 2) << "of each of its hosts";
  EXPECT_THAT(told("stacks"), ElementsAre("ada: in recv()", "bob: in recv()"));
  EXPECT_NE(job("gang").in<job::Stopping>(), nullptr);
  EXPECT_THAT(gang().reason_text, HasSubstr("no progress for 31 s"));
  EXPECT_THAT(told("hangs"), IsEmpty());
}

TEST_F(GangProgress, ThatStopsWhenAMemberIsDoneIsSeenAtTheOther) {
  begin();
  works();
  job::End end;
  end.kind = job::EndKind::exited;
  end.exit_code = 0;
  end.rank = 1;
  book.apply({"gang"}, job::AttemptEnded{gang().epoch, end});
  says("bob", 0, [](wire::AttemptStatus& status) { status.phase = wire::AttemptPhase::ended; });
  ASSERT_NE(job("gang").in<job::Running>(), nullptr);
  look(31s);
  EXPECT_NE(job("gang").in<job::Stopping>(), nullptr);
}

TEST_F(GangProgress, ThatStopsIsOnlyToldWhereTheFileWantsThat) {
  begin([](job::Spec& spec) { spec.recovery.hangs = job::Hangs::tell; });
  works();
  look(31s);
  EXPECT_THAT(told("hangs"), ElementsAre(AllOf(HasSubstr("though all its hosts answer"), HasSubstr("recovery.hangs is tell"))));
  EXPECT_NE(job("gang").in<job::Running>(), nullptr);
  look(60s);
  EXPECT_THAT(told("hangs"), SizeIs(1)) << "once";
  says("ada", ++lines);
  look();
  look(10min);
  EXPECT_THAT(told("hangs"), SizeIs(2)) << "it went on meanwhile";
}

TEST_F(GangProgress, IsSeenInOutputAndCheckpointsOfAnyMember) {
  begin();
  works();
  clock.pass(25s);
  says("bob", 1);
  look(25s);
  EXPECT_EQ(asked("stacks"), 0);
  says("bob", 1, [](wire::AttemptStatus& status) {
    status.checkpoints.emplace_back();
    status.checkpoints.back().number = 1;
  });
  look(25s);
  EXPECT_EQ(asked("stacks"), 0);
  says("bob", 1, [](wire::AttemptStatus& status) {
    status.checkpoints.emplace_back();
    status.checkpoints.back().number = 1;
  });
  look(30s);
  EXPECT_EQ(asked("stacks"), 2) << "what is the same as before is no sign";
}

TEST_F(GangProgress, IsNotSeenInWhatIsNotThisAttempts) {
  begin();
  works();
  clock.pass(25s);
  const wire::AttemptStatus before = said["ada"];
  says("ada", ++lines, [](wire::AttemptStatus& status) { status.epoch = {99}; });
  says("ada", ++lines, [](wire::AttemptStatus& status) { status.phase = wire::AttemptPhase::stopping; });
  says("ada", ++lines, [](wire::AttemptStatus& status) { status.job = {"other"}; });
  add("eve");
  ASSERT_TRUE(fleet().refresh());
  says("eve", ++lines);
  said["ada"] = before;
  look(6s);
  EXPECT_EQ(asked("stacks"), 2);
}

TEST_F(GangProgress, IsNotJudgedBeforeItsRhythmIsKnown) {
  begin();
  for (int i = 0; i < 20; ++i) {
    clock.pass(1s);
    says("ada", ++lines);
  }
  look(10min);
  EXPECT_EQ(asked("stacks"), 0);
}

TEST_F(GangProgress, IsNotJudgedWhileAHostIsSilentOrToBeEmptied) {
  begin();
  works();
  registry::Provider drained = row("bob");
  drained.drained = true;
  ASSERT_THAT(registry.update_provider(drained), gridctl::testing::IsOk());
  ASSERT_TRUE(fleet().refresh());
  look(40s);
  EXPECT_EQ(asked("stacks"), 0);
  drained.drained = false;
  ASSERT_THAT(registry.update_provider(drained), gridctl::testing::IsOk());
  ASSERT_TRUE(fleet().refresh());
  look(29s);
  EXPECT_EQ(asked("stacks"), 0) << "that time does not count";
  look(2s);
  EXPECT_EQ(asked("stacks"), 2);
}

TEST_F(GangProgress, IsNotJudgedByTheTimeThatThisMachineSlept) {
  begin();
  works();
  clock.pass(10min);
  concern().tick(clock.boot());
  run.settle();
  EXPECT_EQ(asked("stacks"), 0) << "nobody has asked its hosts meanwhile";
  look(29s);
  EXPECT_EQ(asked("stacks"), 0);
  look(2s);
  EXPECT_EQ(asked("stacks"), 2) << "from then on it is judged again";
}

TEST_F(GangProgress, ThatGoesOnWhileItsHostsAreAskedIsLeftAlone) {
  begin();
  works();
  clock.pass(31s);
  for (const char* name : {"ada", "bob"}) answers(name);
  concern().tick(clock.boot());
  says("ada", ++lines);
  concern().tick(clock.boot());
  run.settle();
  EXPECT_NE(job("gang").in<job::Running>(), nullptr);
  EXPECT_THAT(told("stacks"), IsEmpty());
}

TEST_F(GangProgress, OfAJobOnOneHostIsNobodysMatter) {
  concern();
  submit("alone");
  place("alone", "ada", 0);
  run.settle();
  look(1h);
  EXPECT_THAT(bulk.script.asked, ::testing::Not(::testing::Contains("steps")));
}

TEST_F(GangProgress, SaysWhereNoStacksCanBeHad) {
  begin([](job::Spec& spec) { spec.recovery.hangs = job::Hangs::tell; });
  bulk.script.replies["stacks"] = {make_error(Code::io, "no ptrace"), std::string("{}")};
  std::string many;
  for (int i = 0; i < 81; ++i) many += "frame " + std::to_string(i) + "\n";
  bulk.script.more["stacks"] = {{wire::FrameKind::data, 0, many},
                                {wire::FrameKind::end, 0, wire::encode(wire::EndRecord{many.size(), {}})}};
  works();
  look(31s);
  const std::vector<std::string> stacks = told("stacks");
  ASSERT_THAT(stacks, SizeIs(2));
  EXPECT_THAT(stacks[0], HasSubstr("ada: no stacks: no ptrace"));
  EXPECT_THAT(stacks[1], HasSubstr("frame 0\nframe 1\n"));
  EXPECT_THAT(stacks[1], HasSubstr("\nframe 79"));
  EXPECT_THAT(stacks[1], ::testing::Not(HasSubstr("frame 80")));
  EXPECT_THAT(stacks[1], HasSubstr(" more line"));
}

// --- Stragglers ------------------------------------------------------------------------------------------------------

TEST_F(GangProgress, IsAskedForStepsSeldomAndNotForEver) {
  begin();
  look();
  EXPECT_EQ(asked("steps"), 2) << "of each host";
  look(14s);
  EXPECT_EQ(asked("steps"), 2);
  look(1s);
  EXPECT_EQ(asked("steps"), 4);
  for (int i = 0; i < 10; ++i) look(15s);
  EXPECT_EQ(asked("steps"), 8) << "four times in a row it told none";
}

TEST_F(GangProgress, ThatTellsStepsIsAskedOn) {
  begin();
  for (int step = 1; step <= 8; ++step) steps(step, 0.1, 0.1);
  EXPECT_EQ(asked("steps"), 16);
  for (int i = 0; i < 10; ++i) steps(8, 0.1, 0.1);
  EXPECT_EQ(asked("steps"), 16 + 8) << "the same step again is no news";
}

TEST_F(GangProgress, ASlowRankIsToldOfOnce) {
  begin();
  for (int step = 1; step <= 9; ++step) steps(step, 0.1, 0.3);
  EXPECT_THAT(told("straggler"), IsEmpty()) << "ten steps are needed";
  for (int step = 10; step <= 12; ++step) steps(step, 0.1, 0.3);
  EXPECT_THAT(told("straggler"), ElementsAre(AllOf(HasSubstr("bob: rank 1 takes 3.0 times as long"), HasSubstr(", on bob"))));
  EXPECT_FALSE(job("gang").in<job::Running>()->move) << "stragglers: tell";
  EXPECT_FALSE(concern().still_wished(job("gang")));
}

TEST_F(GangProgress, ASlowRanksHostIsReplacedWhereTheFileWantsThat) {
  begin([](job::Spec& spec) { spec.recovery.stragglers = job::Stragglers::replace; });
  EXPECT_FALSE(concern().still_wished(job("gang")));
  for (int step = 1; step <= 10; ++step) steps(step, 0.3, 0.1);
  EXPECT_THAT(told("straggler"), ElementsAre(HasSubstr("on ada: gridctl replaces it at the next checkpoint")));
  ASSERT_TRUE(job("gang").in<job::Running>()->move);
  EXPECT_EQ(job("gang").in<job::Running>()->move->why, job::k_for_straggler);
  EXPECT_EQ(job("gang").in<job::Running>()->move->host.value, "ada");
  const auto wish = concern().still_wished(job("gang"));
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->host.value, "ada");
  EXPECT_EQ(wish->why, job::k_for_straggler);
  EXPECT_TRUE(concern().moves_for(job::k_for_straggler));
  EXPECT_FALSE(concern().moves_for(job::k_for_less));
  concern().forgotten({"gang"});
  EXPECT_FALSE(concern().still_wished(job("gang")));
}

TEST_F(GangProgress, RanksThatTellNoTimeOfTheirOwnAreNotCompared) {
  begin();
  for (int step = 1; step <= 12; ++step) steps(step, std::nullopt, 0.3);
  EXPECT_THAT(told("straggler"), IsEmpty());
}

TEST_F(GangProgress, ItsStepsAreASignOfLife) {
  begin([](job::Spec& spec) { spec.recovery.hangs = job::Hangs::tell; });
  for (int step = 1; step <= 25; ++step) steps(step, 0.1, 0.1);
  look(45s);
  EXPECT_EQ(asked("stacks"), 0) << "thrice fifteen seconds";
  bulk.script.replies["steps"] = {};
  look(1s);
  EXPECT_EQ(asked("stacks"), 2);
}

}  // namespace
}  // namespace gridctl::control::progress_concern_test
