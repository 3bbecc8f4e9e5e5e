// SPDX-License-Identifier: Apache-2.0
#include "control/follow/mover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::control::mover_test {
namespace {

using ::testing::HasSubstr;

constexpr WallTime k_begin{1'000'000};

// A job that runs on "a", and the facts around it.
struct Scene {
  job::State state;
  MoveFacts facts;
  WallTime now = k_begin;

  Scene() {
    happen(job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, 0}}, "x"});
    facts.drained = {"a"};
    facts.answers = true;
    facts.patience = std::chrono::minutes{10};
    facts.newest_there = 4;
    facts.decision.placement = sched::Placement{{"b"}, EngineKind::process, {}, 1, 0, 0, "the only one that fits"};
  }
  void run() { happen(job::PayloadStarted{{1}}); }
  void happen(job::Event what) { state = job::step(state, {now, std::move(what)}).state; }
  void taken() {
    facts.decision = {};
    facts.decision.rejections.push_back({{"b"}, "busy", "its CPUs are taken", true});
  }
  // Judges once; what comes of it happens.
  template <class E>
  bool next_is() {
    std::optional<job::Event> next = judge_move(state, facts, now);
    if (!next || !std::holds_alternative<E>(*next)) return false;
    happen(std::move(*next));
    return true;
  }
  bool quiet() const { return !judge_move(state, facts, now); }
};

TEST(Moves, AskThenWaitForACheckpointThenStop) {
  Scene scene;
  scene.run();
  ASSERT_TRUE(scene.next_is<job::MoveRequested>());
  EXPECT_EQ(std::get<job::Running>(scene.state.phase).move->after, 4u);
  EXPECT_TRUE(scene.quiet());
  scene.happen(job::CheckpointCommitted{{1}, {1}, "", 5});
  EXPECT_TRUE(scene.next_is<job::MoveDue>());
  EXPECT_TRUE(scene.quiet()) << "what was begun needs no more judging";
}

TEST(Moves, StopWhenPatienceEnds) {
  Scene scene;
  scene.run();
  ASSERT_TRUE(scene.next_is<job::MoveRequested>());
  scene.now.ms += 599'000;
  EXPECT_TRUE(scene.quiet());
  scene.now.ms += 1'000;
  EXPECT_TRUE(scene.next_is<job::MoveDue>());
}

TEST(Moves, LeaveTheJobAloneAsLongAsNoOtherHostCanTakeIt) {
  Scene scene;
  scene.run();
  scene.taken();
  ASSERT_TRUE(scene.next_is<job::MoveBlocked>());
  EXPECT_THAT(scene.state.reason_text, HasSubstr("1 busy"));
  EXPECT_TRUE(scene.quiet()) << "said once";
  EXPECT_THAT(explain_move(scene.state, scene.facts).front(), HasSubstr("stays until another host"));
  scene.facts.decision = Scene().facts.decision;
  EXPECT_TRUE(scene.next_is<job::MoveRequested>());
}

TEST(Moves, OfAGangAreJudgedByWhatAllItsMembersWouldBe) {
  Scene scene;
  scene.run();
  scene.facts.decision = {};
  scene.facts.gang = sched::GangDecision{};
  scene.facts.wish = {.members = 3, .members_min = 2};
  scene.facts.gang->fitting = 1;
  ASSERT_TRUE(scene.next_is<job::MoveBlocked>());
  EXPECT_THAT(scene.state.reason_text, HasSubstr("1 provider can run a member now, 2 are needed"));
  scene.facts.gang->plan = sched::GangPlan{};
  scene.facts.gang->plan->pool = "all hosts";
  for (const char* host : {"b", "c"})
    scene.facts.gang->plan->members.push_back(sched::Placement{{host}, EngineKind::process, {}, 1, 0, 0, ""});
  EXPECT_TRUE(scene.next_is<job::MoveRequested>());
  EXPECT_THAT(explain_move(scene.state, scene.facts).front(), HasSubstr("moves to 2 hosts of all hosts: b, c"));
}

TEST(Moves, LookAgainBeforeTheStop) {
  Scene scene;
  scene.run();
  ASSERT_TRUE(scene.next_is<job::MoveRequested>());
  scene.happen(job::CheckpointCommitted{{1}, {1}, "", 5});
  scene.taken();
  EXPECT_TRUE(scene.next_is<job::MoveBlocked>());
  EXPECT_TRUE(std::holds_alternative<job::Running>(scene.state.phase));
}

TEST(Moves, AreTakenBackByUndrain) {
  Scene scene;
  scene.run();
  ASSERT_TRUE(scene.next_is<job::MoveRequested>());
  scene.facts.drained = {};
  EXPECT_TRUE(scene.next_is<job::MoveWithdrawn>());
  EXPECT_TRUE(scene.quiet());
  EXPECT_FALSE(may_move(scene.state, false));
}

TEST(Moves, DoNotTouchAHostThatDoesNotAnswer) {
  Scene scene;
  scene.run();
  scene.facts.answers = false;
  EXPECT_TRUE(scene.quiet());
}

struct RiskyScene : Scene {
  RiskyScene() {
    run();
    facts.drained = {};
    facts.wished = true;
    happen(job::MoveRequested{{1}, std::string(job::k_for_deadline), 4, {}, "5min remain", 0.05});
  }
  [[nodiscard]] bool is_moving() const { return std::get<job::Running>(state.phase).move.has_value(); }
};

TEST(MovesForADeadline, WaitForACheckpointHoweverLong) {
  RiskyScene scene;
  EXPECT_EQ(scene.state.reason_text,
            "a is too risky for the deadline: the job moves when its next checkpoint is safe: 5min remain");
  EXPECT_EQ(job::parse_state(job::to_json(scene.state)).value(), scene.state);
  scene.now.ms += 3'600'000;
  EXPECT_TRUE(scene.quiet());
  scene.happen(job::CheckpointCommitted{{1}, {1}, "", 5});
  ASSERT_TRUE(scene.next_is<job::MoveDue>());
  EXPECT_EQ(scene.state.moving(), job::k_for_deadline);
  scene.happen(job::AttemptEnded{{1}, job::End{job::EndKind::stopped, -1, 0, ""}});
  scene.happen(job::Collected{{1}, ""});
  EXPECT_EQ(scene.state.reason_text, "a is too risky for the deadline: continuing elsewhere");
  EXPECT_DOUBLE_EQ(scene.state.failures_max, 0.05) << "for good";
}

TEST(MovesForADeadline, AreTakenBackWhenTheyAreNotWishedAnyMore) {
  RiskyScene scene;
  scene.facts.wished = false;
  ASSERT_TRUE(scene.next_is<job::MoveWithdrawn>());
  EXPECT_FALSE(scene.is_moving());
  EXPECT_TRUE(scene.quiet());
}

TEST(MovesForADeadline, GiveWayToADrain) {
  RiskyScene scene;
  scene.facts.drained = {"a"};
  scene.now.ms += 600'000;
  EXPECT_TRUE(scene.next_is<job::MoveDue>()) << "the owner's patience counts then";
}

struct DearScene : Scene {
  DearScene() {
    run();
    facts.drained = {};
    facts.wished = true;
    happen(job::MoveRequested{{1}, std::string(job::k_for_less), 4, {}, "a needs 3.00 USD, b 1.00 USD"});
  }
};

TEST(MovesToWhatIsCheaper, WaitForACheckpointHoweverLongAndForNoDeadline) {
  DearScene scene;
  EXPECT_EQ(
      scene.state.reason_text,
      "a is more expensive than another host: the job moves when its next checkpoint is safe: a needs 3.00 USD, b 1.00 USD");
  EXPECT_THAT(explain_move(scene.state, scene.facts).front(),
              HasSubstr("a is more expensive than another host: the job moves to b when"));
  EXPECT_EQ(job::parse_state(job::to_json(scene.state)).value(), scene.state);
  scene.now.ms += 3'600'000;
  EXPECT_TRUE(scene.quiet());
  scene.happen(job::CheckpointCommitted{{1}, {1}, "", 5});
  ASSERT_TRUE(scene.next_is<job::MoveDue>());
  EXPECT_EQ(scene.state.moving(), job::k_for_less);
  scene.happen(job::AttemptEnded{{1}, job::End{job::EndKind::stopped, -1, 0, ""}});
  scene.happen(job::Collected{{1}, ""});
  EXPECT_EQ(scene.state.failures_max, 0) << "it may come back";
  EXPECT_TRUE(scene.state.avoided.empty());
}

TEST(MovesToWhatIsCheaper, AreTakenBackWhenTheySaveTooLittle) {
  DearScene scene;
  scene.facts.wished = false;
  ASSERT_TRUE(scene.next_is<job::MoveWithdrawn>());
  EXPECT_FALSE(std::get<job::Running>(scene.state.phase).move.has_value());
  EXPECT_TRUE(scene.quiet());
}

struct LessUrgentScene : Scene {
  LessUrgentScene() {
    run();
    facts.drained = {};
    facts.wished = facts.to_anywhere = true;
    happen(job::MoveRequested{{1}, std::string(job::k_for_priority), 4, {}, "job x of priority 9 waits"});
  }
};

TEST(MovesForAMoreUrgentJob, MakeRoomAfterACheckpointAlsoWhereNoOtherHostIsFree) {
  LessUrgentScene scene;
  scene.taken();
  EXPECT_EQ(scene.state.reason_text,
            "a is needed more urgently: the job moves when its next checkpoint is safe: job x of priority 9 waits");
  scene.now.ms += 3'600'000;
  EXPECT_TRUE(scene.quiet()) << "only after a checkpoint";
  scene.happen(job::CheckpointCommitted{{1}, {1}, "", 5});
  ASSERT_TRUE(scene.next_is<job::MoveDue>());
  scene.happen(job::AttemptEnded{{1}, job::End{job::EndKind::stopped, -1, 0, ""}});
  scene.happen(job::Collected{{1}, ""});
  EXPECT_EQ(scene.state.reason_text, "a is needed more urgently: continuing elsewhere");
  EXPECT_TRUE(std::holds_alternative<job::Waiting>(scene.state.phase));
  EXPECT_TRUE(scene.state.avoided.empty());
}

TEST(MovesForAMoreUrgentJob, AreTakenBackWhenThatOneHasAPlace) {
  LessUrgentScene scene;
  scene.facts.wished = false;
  ASSERT_TRUE(scene.next_is<job::MoveWithdrawn>());
  EXPECT_FALSE(std::get<job::Running>(scene.state.phase).move.has_value());
  EXPECT_TRUE(scene.quiet());
}

struct WorkerScene : Scene {
  explicit WorkerScene(std::string why = std::string(job::k_for_priority)) {
    run();
    facts.drained = {};
    facts.wished = facts.to_anywhere = facts.by_tasks = true;
    facts.patience = std::chrono::minutes{2};
    happen(job::MoveRequested{{1}, std::move(why), 4, facts.patience, "job x of priority 9 waits", 0, {}, true});
  }
};

TEST(MovesOfAWorker, WaitForItsTasksAndForNoCheckpoint) {
  WorkerScene scene;
  EXPECT_EQ(scene.state.reason_text,
            "a is needed more urgently: this worker gets no more tasks, and leaves when those that it runs have ended, in at most 2m: "
            "job x of priority 9 waits");
  EXPECT_TRUE(scene.quiet());
  EXPECT_EQ(explain_move(scene.state, scene.facts).front(),
            "a is needed more urgently: this worker gets no more tasks, leaves when those that it runs have ended, and then goes to b");
  scene.facts.tasks_ended = true;
  ASSERT_TRUE(scene.next_is<job::MoveDue>());
  EXPECT_EQ(scene.state.reason_text, "a is needed more urgently: stopping there, the tasks that it ran have ended");
}

TEST(MovesOfAWorker, StopTasksWhoseTimeIsOver) {
  WorkerScene scene;
  scene.taken();
  scene.now.ms += 119'999;
  EXPECT_TRUE(scene.quiet());
  scene.now.ms += 1;
  ASSERT_TRUE(scene.next_is<job::MoveDue>());
  EXPECT_EQ(scene.state.reason_text, "a is needed more urgently: stopping there, the time for its tasks is over: those that still run go "
                                     "back to the bag, and that is no failure");
}

TEST(MovesOfAWorker, WaitForItsTasksAsLongAsTheyTakeIfNobodyIsInAHurry) {
  WorkerScene scene(std::string(job::k_for_less));
  scene.facts.patience = {};
  scene.now.ms += 3'600'000;
  EXPECT_TRUE(scene.quiet());
}

TEST(Moves, BreakOffAStartOnlyForAnotherHost) {
  Scene scene;
  scene.taken();
  EXPECT_TRUE(scene.quiet());
  scene.facts.decision = Scene().facts.decision;
  ASSERT_TRUE(scene.next_is<job::MoveRequested>());
  EXPECT_TRUE(std::holds_alternative<job::Stopping>(scene.state.phase));
}

}  // namespace
}  // namespace gridctl::control::mover_test
