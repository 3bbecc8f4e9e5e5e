// SPDX-License-Identifier: Apache-2.0
// What concerns leave alone, what they tell and how often: each in a world without faults.
#include <gmock/gmock.h>

#include "grid.hpp"

namespace gridctl::sim::concern_details_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Options one_host() {
  Options o = quiet_options();
  o.hosts = 1;
  return o;
}

// --- Limits ----------------------------------------------------------------------------------------------------------

TEST(Limits, AJobThatHasUsedUpItsTimeIsNotPlacedAgain) {
  Grid grid(one_host());
  grid.add("long", [](job::Spec& spec) { spec.max_duration = std::chrono::minutes{3}; });
  grid.add("free");
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  grid.laptop().user_resumes({"long"});
  ASSERT_TRUE(grid.until([&] { return !grid.ended("long"); }));
  EXPECT_TRUE(grid.never(12 * k_min, [&] { return grid.runs("long"); }));
  ASSERT_TRUE(grid.until([&] { return grid.ended("free"); }));
  EXPECT_EQ(grid.job("free").state, job::JobState::succeeded) << "who has no limit is not concerned";
}

TEST(Limits, AreCountedHereWhileTheHostIsNotHeard) {
  Options o = one_host();
  o.faults = {{FaultKind::cut_both, k_min, 10 * k_min}};
  Grid grid(o);
  grid.add("long", [](job::Spec& spec) {
    spec.max_duration = std::chrono::minutes{3};
    spec.recovery.lost_after = std::chrono::hours{1};
  });
  ASSERT_TRUE(grid.until([&] { return grid.runs("long"); }));
  const Nanos began = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.job("long").machine.limit == "max_duration"; }));
  EXPECT_LT(grid.world.now - began, 3 * k_min + 10 * k_s) << "not only when it is heard again";
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::cancelled);
}

TEST(Limits, ADeadlineEndsAlsoWhatWaits) {
  Grid grid(one_host());
  const auto add = [&](const std::string& name, const std::optional<job::Deadline>& deadline) {
    grid.add(name, [&](job::Spec& spec) {
      spec.resources.gpus.front().count_min = spec.resources.gpus.front().count_max = grid.world.options.gpus_per_host;
      spec.priority = deadline ? 0 : 1;
      spec.deadline = deadline;
    });
  };
  add("first", std::nullopt);
  add("waits", job::Deadline{{}, std::chrono::minutes{4}, true});
  add("late", job::Deadline{{}, std::chrono::minutes{4}, false});
  ASSERT_TRUE(grid.until([&] { return grid.ended("waits"); }));
  EXPECT_EQ(grid.job("waits").machine.limit, "deadline");
  ASSERT_TRUE(grid.until([&] { return grid.job("late").machine.late; }));
  EXPECT_TRUE(grid.runs("first")) << "they waited";
}

TEST(Limits, TwinsSpendTheBudgetOfTheirLeader) {
  Options o = quiet_options();
  o.prices = {6, 6};
  Grid grid(o);
  grid.add("pair", [](job::Spec& spec) {
    spec.twins = 2;
    spec.budget_total = 0.8;  // eight minutes of one, four of two
  });
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  const Nanos began = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair") && grid.ended("pairr2"); }));
  EXPECT_EQ(grid.job("pair").machine.limit, "budget");
  EXPECT_LT(grid.world.now - began, 5 * k_min);
  EXPECT_EQ(grid.job("pairr2").machine.limit, "leader_ended");
}

// --- Budgets ---------------------------------------------------------------------------------------------------------

TEST(Budgets, OfAllJobsBindEachOfThemThatCosts) {
  Options o = quiet_options();
  o.prices = {6, 6};
  Grid grid(o);
  grid.add("adas", [](job::Spec& spec) { spec.owner = "ada"; });
  grid.add("bobs", [](job::Spec& spec) { spec.owner = "bob"; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("adas") && grid.runs("bobs"); }));
  grid.laptop().user_budgets("", 0.4);
  ASSERT_TRUE(grid.until([&] { return grid.ended("adas") && grid.ended("bobs"); }));
  EXPECT_EQ(grid.job("adas").machine.limit, "month_budget");
  EXPECT_EQ(grid.job("bobs").machine.limit, "month_budget");
  const auto budgets = grid.laptop().records()->budgets();
  ASSERT_TRUE(budgets);
  ASSERT_THAT(*budgets, SizeIs(1));
  EXPECT_EQ(budgets->front().used_up.size(), std::string("2026-11").size()) << "it is written down in which month";
}

TEST(Budgets, LeaveAloneWhatCostsNothing) {
  Options o = one_host();
  o.prices = {0};
  Grid grid(o);
  grid.add("free", [](job::Spec& spec) { spec.owner = "ada"; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("free"); }));
  grid.laptop().user_budgets("ada", 0);
  ASSERT_TRUE(grid.until([&] { return grid.ended("free"); }));
  EXPECT_EQ(grid.job("free").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("free").machine.attempts.value, 1u);
}

TEST(Budgets, ThatAreUsedUpLetNothingThatCostsBegin) {
  Options o = one_host();
  o.prices = {6};
  Grid grid(o);
  grid.add("first", [](job::Spec& spec) { spec.owner = "ada"; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("first"); }));
  grid.laptop().user_budgets("ada", 0.3);
  ASSERT_TRUE(grid.until([&] { return grid.ended("first"); }));
  grid.add("second", [](job::Spec& spec) { spec.owner = "ada"; });
  grid.add("third", [](job::Spec& spec) { spec.owner = "bob"; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.ended("third"); }));
  EXPECT_EQ(grid.job("third").state, job::JobState::succeeded);
  EXPECT_FALSE(grid.runs("second"));
  EXPECT_EQ(grid.job("second").machine.attempts.value, 0u);
  EXPECT_THAT(grid.job("second").machine.reason_text, HasSubstr("budget"));
}

// --- Twins --------------------------------------------------------------------------------------------------------

TEST(Twins, AreJobsOfTheirOwnThatEndWithTheirLeader) {
  Options o = quiet_options();
  o.hosts = 3;
  o.work = 5 * k_min;
  Grid grid(o);
  grid.add("trio", [](job::Spec& spec) {
    spec.twins = 3;
    spec.checkpoint.copies = 2;
    spec.budget_total = 100;
    spec.max_duration = std::chrono::hours{9};
    spec.deadline = job::Deadline{{}, std::chrono::hours{10}, true};
  });
  ASSERT_TRUE(grid.until([&] { return grid.runs("trio") && grid.runs("trior2") && grid.runs("trior3"); }));
  const registry::Job leader = grid.job("trio"), second = grid.job("trior2");
  EXPECT_EQ(second.spec.name, "trio-r2");
  EXPECT_EQ(second.spec.twins, 1);
  EXPECT_EQ(second.spec.twin_of, leader.id);
  EXPECT_EQ(second.spec.checkpoint.copies, 1);
  EXPECT_FALSE(second.spec.budget_total);
  EXPECT_FALSE(second.spec.max_duration);
  ASSERT_TRUE(second.spec.deadline);
  EXPECT_FALSE(second.spec.deadline->hard);
  EXPECT_EQ(job::moment_of(*second.spec.deadline, second.submitted_at), job::moment_of(*leader.spec.deadline, leader.submitted_at));
  EXPECT_THAT(grid.texts("trio", "replica"), ElementsAre("twin 2 of 3 is trio-r2 (trior2)", "twin 3 of 3 is trio-r3 (trior3)"));
  ASSERT_TRUE(grid.until([&] { return grid.ended("trio") && grid.ended("trior2") && grid.ended("trior3"); }));
  EXPECT_EQ(grid.job("trio").state, job::JobState::succeeded);
  EXPECT_TRUE(grid.never(k_min, [&] { return grid.runs("trior2") || grid.runs("trior3"); }));
  const registry::Job third = grid.job("trior3");
  EXPECT_TRUE(third.state == job::JobState::succeeded || third.machine.limit == "leader_ended");
  if (third.machine.limit == "leader_ended") {
    EXPECT_EQ(third.machine.limit_text, "trio (trio) has its result");
    EXPECT_EQ(third.machine.cancel, Duration::zero()) << "nothing of it is needed any more";
  }
}

TEST(Twins, OneWhoseSecretsCouldNotBeSharedIsMadeWhenTheyAre) {
  for (const Fate fate : {Fate::fails, Fate::lost}) {
    Grid grid(quiet_options());
    grid.world.points.track();
    grid.world.points.planned = {{{Point::folders_keep_secrets, Point::folders_keep_secrets}, fate}};
    grid.add("pair", [](job::Spec& spec) {
      spec.twins = 2;
      spec.secrets = {"TOKEN"};
    });
    ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
    EXPECT_TRUE(grid.world.points.planned.empty()) << "it came to that";
    EXPECT_EQ(grid.job("pairr2").machine.attempts.value, 1u);
  }
}

TEST(Twins, OneThatIsCancelledIsToldOfOnceAndTheOthersGoOn) {
  Grid grid(quiet_options());
  grid.add("pair", [](job::Spec& spec) { spec.twins = 2; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  grid.laptop().user_cancels({"pairr2"}, true);
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair"); }));
  EXPECT_EQ(grid.job("pair").state, job::JobState::succeeded);
  EXPECT_THAT(grid.texts("pair", "replica_ended"), ElementsAre(HasSubstr("twin pair-r2 (pairr2) ended: ")));
  EXPECT_THAT(grid.texts("pair", "replica_ended").front(), HasSubstr("; the others go on"));
}

TEST(Twins, GoOnWithALeaderThatIsResumed) {
  Grid grid(quiet_options());
  grid.add("pair", [](job::Spec& spec) { spec.twins = 2; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  grid.laptop().user_cancels({"pair"}, false);
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair") && grid.ended("pairr2"); }));
  EXPECT_THAT(grid.job("pairr2").machine.limit_text, HasSubstr("was cancelled"));
  grid.laptop().user_resumes({"pair"});
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  EXPECT_NE(grid.host("pair"), grid.host("pairr2"));
  EXPECT_THAT(grid.texts("pair", "replica"), SizeIs(1)) << "it is the same one";
}

// --- Priorities ------------------------------------------------------------------------------------------------------

int preemptions(Grid& grid, const std::string& name) { return static_cast<int>(grid.texts(name, "preempting").size()); }

TEST(Preemption, AnEqualJobWaits) {
  Options o = one_host();
  o.work = 5 * k_min;
  Grid grid(o);
  grid.add("first", [](job::Spec& spec) { spec.priority = 2; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("first"); }));
  grid.add("second", [](job::Spec& spec) { spec.priority = 2; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("second"); }));
  EXPECT_TRUE(grid.ended("first"));
  EXPECT_EQ(preemptions(grid, "second"), 0);
  EXPECT_EQ(grid.job("first").machine.attempts.value, 1u);
}

TEST(Preemption, AJobThatSavesNothingIsLeftAlone) {
  Options o = one_host();
  o.work = 5 * k_min;
  Grid grid(o);
  grid.add("forgetful", [](job::Spec& spec) { spec.checkpoint.interval = job::CheckpointPolicy::Interval::off; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("forgetful"); }));
  grid.add("urgent", [](job::Spec& spec) { spec.priority = 5; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.ended("forgetful"));
  EXPECT_EQ(grid.job("forgetful").machine.attempts.value, 1u);
  EXPECT_EQ(preemptions(grid, "urgent"), 0);
}

TEST(Preemption, TheLeastUrgentLeavesAndItIsToldOnce) {
  Grid grid(quiet_options());
  grid.add("low");
  grid.add("middle", [](job::Spec& spec) { spec.priority = 1; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("low") && grid.runs("middle"); }));
  grid.add("urgent", [](job::Spec& spec) { spec.priority = 5; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.runs("middle"));
  EXPECT_EQ(grid.job("middle").machine.attempts.value, 1u);
  EXPECT_FALSE(grid.runs("low"));
  EXPECT_THAT(grid.texts("urgent", "preempting"), ElementsAre(HasSubstr("with less priority: low")));
  EXPECT_THAT(grid.texts("middle", "move_requested"), IsEmpty()) << "nor while the other is being stopped";
}

TEST(Preemption, AWishThatIsGoneIsWithdrawn) {
  Options o = one_host();
  o.save_every = 3 * k_min;
  o.work = 8 * k_min;
  Grid grid(o);
  grid.add("modest");
  ASSERT_TRUE(grid.until([&] { return grid.runs("modest"); }));
  grid.add("urgent", [](job::Spec& spec) { spec.priority = 5; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return preemptions(grid, "urgent") == 1; }));
  grid.laptop().user_cancels({"urgent"}, true);
  ASSERT_TRUE(grid.until([&] { return grid.ended("modest"); }));
  EXPECT_EQ(grid.job("modest").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("modest").machine.attempts.value, 1u) << "it stays";
}

TEST(Preemption, AGangThatFitsAsThingsAreSendsNobodyAway) {
  Options o = quiet_options();
  o.hosts = 3;
  o.ganged = 1;
  Grid grid(o);
  grid.add("lesser", [](job::Spec& spec) { spec.num_nodes = 1; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("lesser"); }));
  grid.add("gang", [](job::Spec& spec) {
    spec.num_nodes = 2;
    spec.priority = 3;
  });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); }));
  EXPECT_TRUE(grid.runs("lesser"));
  EXPECT_EQ(preemptions(grid, "gang"), 0);
}

// --- Prices ----------------------------------------------------------------------------------------------------------

TEST(Prices, AJobOnACheapHostStays) {
  Options o = quiet_options();
  o.work = 20 * k_min;
  o.prices = {1, 30};
  Grid grid(o);
  grid.add("content");
  ASSERT_TRUE(grid.until([&] { return grid.runs("content"); }));
  EXPECT_EQ(grid.host("content"), "host0");
  grid.laptop().user_prices(1, 0.99);
  ASSERT_TRUE(grid.until([&] { return grid.ended("content"); }));
  EXPECT_EQ(grid.job("content").machine.attempts.value, 1u) << "a cent is not worth a move";
}

TEST(Prices, OfWhatHasEndedAreNotChanged) {
  Options o = one_host();
  o.prices = {6};
  Grid grid(o);
  grid.add("done");
  ASSERT_TRUE(grid.until([&] { return grid.ended("done"); }));
  const auto spent = grid.laptop().records()->spent({"done"}, grid.laptop().wall());
  grid.laptop().user_prices(0, 60);
  EXPECT_TRUE(grid.never(k_min, [&] { return grid.runs("done"); }));
  EXPECT_DOUBLE_EQ(grid.laptop().records()->spent({"done"}, grid.laptop().wall())->usd, spent->usd);
}

// --- Standby ---------------------------------------------------------------------------------------------------------

TEST(Standby, IsToldOfOnceForEachHost) {
  Options o = quiet_options();
  o.hosts = 3;
  Grid grid(o);
  grid.add("warm", [](job::Spec& spec) { spec.checkpoint.standby = true; });
  grid.add("cold");
  ASSERT_TRUE(grid.until([&] { return grid.job("warm").machine.head.value >= 6; }));
  EXPECT_THAT(grid.texts("warm", "standby"), SizeIs(1)) << "each newer checkpoint goes there without a word";
  EXPECT_THAT(grid.texts("cold", "standby"), IsEmpty());
  EXPECT_THAT(grid.texts("warm", "standby").front(), Not(HasSubstr(grid.host("warm") + " keeps")));
}

TEST(Standby, DoesNotKeepAJobFromTheHostThatItWasOnWhenItIsRestarted) {
  Options o = quiet_options();
  o.hosts = 3;
  Grid grid(o);
  grid.add("warm", [](job::Spec& spec) { spec.checkpoint.standby = true; });
  ASSERT_TRUE(grid.until([&] { return grid.told("warm", "standby"); }));
  const std::string spare = grid.texts("warm", "standby").front().substr(0, 5);
  const std::string before = grid.host("warm");
  EXPECT_NE(spare, before);
  grid.world.hosts[static_cast<std::size_t>(std::stoi(before.substr(4)))]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.runs("warm") && grid.host("warm") != before; }));
  EXPECT_EQ(grid.host("warm"), spare);
}

// --- Gangs -----------------------------------------------------------------------------------------------------------

TEST(Turns, SayWhatAGangWaitsForAndEndWhenItRuns) {
  Options o = quiet_options();
  o.hosts = 2;
  o.ganged = 1;
  o.work = 6 * k_min;
  Grid grid(o);
  grid.add("first", [](job::Spec& spec) { spec.num_nodes = 1; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("first"); }));
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.told("gang", "kept_for_it"); }));
  const std::string free = grid.host("first") == "host0" ? "host1" : "host0";
  EXPECT_THAT(grid.texts("gang", "kept_for_it"), ElementsAre("waits for 2 hosts: " + free + " is free now"));
  grid.add("late", [](job::Spec& spec) { spec.num_nodes = 1; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); }));
  EXPECT_EQ(grid.job("late").machine.attempts.value, 0u) << "what is kept for it is nobody else's";
  ASSERT_TRUE(grid.until([&] { return grid.ended("gang") && grid.ended("late"); }));
  EXPECT_THAT(grid.texts("gang", "kept_for_it"), SizeIs(1));
}

TEST(Turns, LetOthersFillInForAMinute) {
  Options o = quiet_options();
  o.hosts = 2;
  o.ganged = 1;
  o.work = 6 * k_min;
  Grid grid(o);
  grid.add("first", [](job::Spec& spec) { spec.num_nodes = 1; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("first"); }));
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  grid.add("small", [](job::Spec& spec) { spec.num_nodes = 1; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("small"); }));
  EXPECT_THAT(grid.texts("gang", "kept_for_it"), IsEmpty());
}

TEST(Elastic, AGangThatSavesNothingDoesNotGrow) {
  Options o = quiet_options();
  o.hosts = 3;
  o.ganged = 1;
  o.work = 10 * k_min;
  Grid grid(o);
  grid.add("other", [](job::Spec& spec) { spec.num_nodes = 1, spec.workload.work = std::chrono::minutes{3}; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("other"); }));
  grid.add("gang", [](job::Spec& spec) {
    spec.num_nodes = 3;
    spec.gang.nodes_min = 2;
    spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); }));
  ASSERT_TRUE(grid.until([&] { return grid.ended("gang"); }));
  EXPECT_EQ(grid.job("gang").machine.attempts.value, 1u);
}

}  // namespace
}  // namespace gridctl::sim::concern_details_test
