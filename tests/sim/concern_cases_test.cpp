// SPDX-License-Identifier: Apache-2.0
// Deadlines, trust, limits that hosts keep by themselves, and what waiting gangs are told: each in a world without faults
// but those that a test makes.
#include <gmock/gmock.h>

#include "grid.hpp"
#include "registry/registry.hpp"

namespace gridctl::sim::concern_cases_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// With the registry that ships, which keeps explanations.
std::vector<std::string> explanation(Grid& grid, const std::string& job) {
  auto* registry = dynamic_cast<registry::Registry*>(grid.laptop().records());
  const auto lines = registry == nullptr ? std::vector<std::string>{} : *registry->explanation({job});
  return lines;
}

// --- Borrowed hosts -------------------------------------------------------------------------------------------------

// The hosts of this world know no benchmark: the rule ends at once, and the host is used all the same.
TEST(Measuring, EndsWhereAHostCannotBeMeasured) {
  Options o = quiet_options();
  o.hosts = o.lent = 1;
  o.measured = false;
  Grid grid(o);
  grid.add("first");
  ASSERT_TRUE(grid.until([&] { return grid.ended("first"); }));
  EXPECT_EQ(grid.job("first").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("first").machine.attempts.value, 1u);
  const auto events = *grid.laptop().records()->host_events({"host0"}, 0);
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const auto& one) { return one.kind == "bench"; }), 1);
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

Options two_prices() {
  Options o = quiet_options();
  o.lent = 1;  // its market fails far more often
  o.own_class = "datacenter";  // a plain process may go on there
  o.prices = {0, 9};
  return o;
}

// A lent host that costs nothing and fails often, and a dear one. The job saves seldom.
void add_due(Grid& grid, Duration deadline) {
  grid.add("due", [&](job::Spec& spec) { spec.deadline = job::Deadline{{}, deadline, false}; });
}
Options seldom_saved() {
  Options o = two_prices();
  o.work = 20 * k_min;
  o.save_every = 8 * k_min;
  return o;
}

TEST(Deadlines, AJobLeavesWhatMayFailAtTheLastMoment) {
  Grid grid(seldom_saved());
  add_due(grid, std::chrono::minutes{29});
  ASSERT_TRUE(grid.until([&] { return grid.runs("due"); }));
  EXPECT_EQ(grid.host("due"), "host1") << "nothing is saved yet";
  ASSERT_TRUE(grid.until([&] { return grid.runs("due") && grid.host("due") == "host0"; }));
  ASSERT_TRUE(grid.until([&] { return grid.runs("due") && grid.host("due") == "host1"; }));
  EXPECT_THAT(grid.texts("due", "moved_away").back(), HasSubstr("host0 is too risky for the deadline"));
  EXPECT_THAT(grid.texts("due", "move_requested").back(), HasSubstr("after a failure now host1 could hardly be in time any more"));
  EXPECT_GT(grid.job("due").machine.failures_max, 0) << "it goes for good";
  ASSERT_TRUE(grid.until([&] { return grid.ended("due"); }));
  EXPECT_EQ(grid.job("due").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("due").machine.attempts.value, 3u);
  EXPECT_FALSE(grid.job("due").machine.late);
}

TEST(Deadlines, AJobWithTimeToSpareStaysWhereItIs) {
  Grid grid(seldom_saved());
  add_due(grid, std::chrono::minutes{45});
  ASSERT_TRUE(grid.until([&] { return grid.ended("due"); }));
  EXPECT_EQ(grid.job("due").machine.attempts.value, 1u);
  EXPECT_THAT(grid.texts("due", "move_requested"), IsEmpty());
  EXPECT_THAT(grid.texts("due", "deadline_at_risk"), IsEmpty());
}

TEST(Deadlines, AJobThatSavesNothingDoesNotMoveForIt) {
  Grid grid(seldom_saved());
  grid.add("due", [&](job::Spec& spec) {
    spec.deadline = job::Deadline{{}, std::chrono::minutes{29}, false};
    spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  });
  ASSERT_TRUE(grid.until([&] { return grid.ended("due"); }));
  EXPECT_THAT(grid.texts("due", "move_requested"), Not(Contains(HasSubstr("too risky"))));
}

TEST(Deadlines, AJobThatCannotBeInTimeIsToldOfOnce) {
  Options o = quiet_options();
  o.hosts = 4;
  Grid grid(o);
  grid.add("hopeless", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, std::chrono::minutes{5}, false}; });
  grid.add("easy", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, std::chrono::hours{50}, false}; });
  ASSERT_TRUE(grid.until([&] { return grid.ended("hopeless") && grid.ended("easy"); }));
  EXPECT_THAT(grid.texts("hopeless", "deadline_at_risk"), ElementsAre(HasSubstr("deadline in ")));
  EXPECT_THAT(grid.texts("hopeless", "deadline_passed"), SizeIs(1));
  EXPECT_TRUE(grid.job("hopeless").machine.late);
  EXPECT_THAT(grid.texts("easy", "deadline_at_risk"), IsEmpty());
  EXPECT_EQ(grid.job("easy").machine.attempts.value, 1u);
}

TEST(Deadlines, WithoutAnotherHostTheRiskIsToldWhileItRuns) {
  Options o = quiet_options();
  o.hosts = 1;
  o.lent = 1;
  Grid grid(o);
  grid.add("due", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, std::chrono::minutes{13}, false}; });
  ASSERT_TRUE(grid.until([&] { return grid.ended("due"); }));
  EXPECT_THAT(grid.texts("due", "deadline_at_risk"), SizeIs(1));
  EXPECT_EQ(grid.job("due").machine.attempts.value, 1u);
  EXPECT_FALSE(grid.job("due").machine.late);
}

// --- Limits ----------------------------------------------------------------------------------------------------------

TEST(Limits, AreKeptByTheHostWhileNobodyWatches) {
  Options o = quiet_options();
  o.hosts = 3;
  o.prices = {6, 6, 6};
  o.work = 30 * k_min;
  Grid grid(o);
  grid.add("long", [](job::Spec& spec) { spec.max_duration = std::chrono::minutes{4}; });
  grid.add("dear", [](job::Spec& spec) { spec.budget_total = 0.5; });  // five minutes
  grid.add("owned", [](job::Spec& spec) { spec.owner = "ada"; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("long") && grid.runs("dear") && grid.runs("owned"); }));
  grid.laptop().user_budgets("ada", 0.6);
  ASSERT_TRUE(grid.never(20 * k_s, [&] { return grid.ended("long"); }));
  grid.laptop().die(false);
  grid.world.run_until(grid.world.now + 15 * k_min);
  grid.laptop().begin();
  ASSERT_TRUE(grid.until([&] { return grid.ended("long") && grid.ended("dear") && grid.ended("owned"); }));
  EXPECT_EQ(grid.job("long").machine.limit, "max_duration");
  EXPECT_EQ(grid.job("dear").machine.limit, "budget");
  EXPECT_EQ(grid.job("owned").machine.limit, "month_budget");
  const WallTime now = grid.laptop().wall();
  EXPECT_LE(grid.laptop().records()->spent({"long"}, now)->ran, std::chrono::minutes{4} + std::chrono::seconds{2});
  EXPECT_LE(grid.laptop().records()->spent({"dear"}, now)->usd, 0.5);
  EXPECT_LE(grid.laptop().records()->spent({"owned"}, now)->usd, 0.6);
  for (const char* id : {"long", "dear", "owned"}) EXPECT_EQ(grid.job(id).machine.attempts.value, 1u) << id;
  EXPECT_THAT(grid.job("owned").machine.limit_text, HasSubstr("the budget of ada for "));
}

TEST(Limits, OfALeaderStopItsTwinsWithTheReason) {
  Options o = quiet_options();
  o.prices = {6, 6};
  Grid grid(o);
  grid.add("pair", [](job::Spec& spec) {
    spec.twins = 2;
    spec.max_duration = std::chrono::minutes{2};
  });
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair") && grid.ended("pairr2"); }));
  EXPECT_EQ(grid.job("pair").machine.limit, "max_duration");
  EXPECT_THAT(grid.job("pairr2").machine.limit_text, HasSubstr("pair (pair) was stopped: it has run for 2m"));
}

// --- Twins --------------------------------------------------------------------------------------------------------

TEST(Twins, ShareSecretsAndHaveNamesThatAreNotTooLong) {
  Grid grid(quiet_options());
  grid.add("pair", [](job::Spec& spec) {
    spec.name = std::string(63, 'n');
    spec.twins = 2;
    spec.secrets = {"TOKEN"};
  });
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  EXPECT_EQ(grid.job("pairr2").spec.name, std::string(60, 'n') + "-r2");
  EXPECT_EQ(grid.job("pairr2").spec.secrets.size(), 1u);
  grid.laptop().user_cancels({"pair"}, true);
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair") && grid.ended("pairr2"); }));
  grid.laptop().user_resumes({"pair"});
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); })) << "with its secrets again";
}

TEST(Twins, WaitRatherThanShareAMachine) {
  Options o = quiet_options();
  o.gpus_per_host = 3;
  Grid grid(o);
  grid.add("trio", [](job::Spec& spec) { spec.twins = 3; });
  grid.add("other");
  ASSERT_TRUE(grid.until([&] { return grid.runs("trio") && grid.runs("trior2") && grid.runs("other"); }));
  EXPECT_TRUE(grid.never(2 * k_min, [&] { return grid.runs("trior3"); })) << "there are two machines";
  EXPECT_EQ(grid.job("trior3").machine.attempts.value, 0u);
  EXPECT_NE(grid.host("trio"), grid.host("trior2"));
}

// --- Trust -----------------------------------------------------------------------------------------------------------

TEST(Trust, AJobThatHasSavedNothingMayGoAnywhere) {
  Options o = quiet_options();
  o.lent = 1;
  o.prices = {0, 9};
  o.save_every = 5 * k_min;
  Grid grid(o);
  grid.add("careful", [](job::Spec& spec) { spec.recovery.restore_from = job::RestoreFrom::trusted; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("careful") && grid.host("careful") == "host0"; }));
  grid.world.hosts[0]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.runs("careful") && grid.host("careful") == "host1"; }));
}

TEST(Trust, WhatOwnHostsHaveSavedMayGoToOwnHosts) {
  Options o = quiet_options();
  o.hosts = 3;
  o.lent = 1;
  o.prices = {90, 1, 2};
  Grid grid(o);
  grid.add("careful", [](job::Spec& spec) { spec.recovery.restore_from = job::RestoreFrom::trusted; });
  ASSERT_TRUE(grid.until([&] { return grid.host("careful") == "host1" && grid.job("careful").machine.head.value > 1; }));
  grid.world.hosts[1]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.runs("careful") && grid.host("careful") == "host2"; }));
  EXPECT_GT(grid.job("careful").machine.attempt()->resumed_from.value, 0u);
}

TEST(Trust, ALentHostThatHadAHandInItMakesAllLaterOnesStrange) {
  Options o = quiet_options();
  o.hosts = 3;
  o.lent = 2;
  o.prices = {0, 1, 90};
  Grid grid(o);
  grid.add("careful", [](job::Spec& spec) { spec.recovery.restore_from = job::RestoreFrom::trusted; });
  ASSERT_TRUE(grid.until([&] { return grid.host("careful") == "host0" && grid.job("careful").machine.head.value > 0; }));
  grid.world.hosts[0]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.runs("careful") && grid.host("careful") == "host1"; })) << "another lent one may";
  const std::uint64_t head = grid.job("careful").machine.head.value;
  ASSERT_TRUE(grid.until([&] { return grid.job("careful").machine.head.value > head; }));
  grid.world.hosts[1]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.job("careful").machine.reason == "waiting_for_provider"; }));
  EXPECT_TRUE(grid.never(3 * k_min, [&] { return grid.runs("careful"); }));
}

TEST(Trust, AJobWhoseFileDoesNotCareIsNotHeldBack) {
  Options o = quiet_options();
  o.lent = 1;
  o.prices = {0, 9};
  Grid grid(o);
  grid.add("careless", [](job::Spec& spec) { spec.recovery.restore_from = job::RestoreFrom::any; });
  ASSERT_TRUE(grid.until([&] { return grid.host("careless") == "host0" && grid.job("careless").machine.head.value > 0; }));
  grid.world.hosts[0]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.runs("careless") && grid.host("careless") == "host1"; }));
}

// --- Priorities and prices -------------------------------------------------------------------------------------------

TEST(Preemption, AGangIsNotAskedToLeave) {
  Options o = quiet_options();
  o.ganged = 1;
  o.work = 5 * k_min;
  Grid grid(o);
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); }));
  grid.add("urgent", [](job::Spec& spec) {
    spec.num_nodes = 1;
    spec.priority = 5;
  });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.ended("gang"));
  EXPECT_EQ(grid.job("gang").machine.attempts.value, 1u);
}

TEST(Preemption, SaysForWhomItLeavesAndKeepsThatPlace) {
  Options o = quiet_options();
  o.hosts = 1;
  Grid grid(o);
  grid.add("modest");
  ASSERT_TRUE(grid.until([&] { return grid.runs("modest"); }));
  grid.add("urgent", [](job::Spec& spec) { spec.priority = 5; });
  grid.add("between", [](job::Spec& spec) { spec.priority = 3; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_THAT(grid.texts("modest", "move_requested"), ElementsAre(HasSubstr("job urgent of priority 5 waits")));
  EXPECT_EQ(grid.job("between").machine.attempts.value, 0u);
  EXPECT_THAT(grid.texts("between", "preempting"), IsEmpty()) << "nobody is below it that could leave";
  ASSERT_TRUE(grid.until([&] { return grid.runs("between"); }));
  EXPECT_FALSE(grid.ended("modest")) << "in their order";
}

TEST(Prices, AJobThatMovesIsNotMovedForLess) {
  Options o = quiet_options();
  o.work = 60 * k_min;
  o.save_every = 10 * k_min;
  o.hosts = 3;
  o.prices = {10, 12, 90};
  Grid grid(o);
  grid.add("thrifty");
  ASSERT_TRUE(grid.until([&] { return grid.runs("thrifty") && grid.host("thrifty") == "host0"; }));
  grid.laptop().user_prices(2, 1);
  ASSERT_TRUE(grid.until([&] { return grid.told("thrifty", "move_requested"); }));
  EXPECT_THAT(grid.texts("thrifty", "move_requested").front(), HasSubstr("host2"));
  grid.laptop().user_prices(2, 90);
  ASSERT_TRUE(grid.until([&] { return grid.told("thrifty", "move_withdrawn"); })) << "it is not cheaper any more";
  EXPECT_TRUE(grid.never(k_min, [&] { return grid.host("thrifty") != "host0"; }));
}

// --- Standby ---------------------------------------------------------------------------------------------------------

TEST(Standby, ThatAHostCouldNotTakeIsTriedAgainAfterAMinute) {
  Grid grid(quiet_options());
  grid.add("warm", [](job::Spec& spec) { spec.checkpoint.standby = true; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("warm"); }));
  Host& other = *grid.world.hosts[grid.host("warm") == "host0" ? 1 : 0];
  other.disk_full = true;
  ASSERT_TRUE(grid.until([&] { return grid.job("warm").machine.head.value == 2; }));
  EXPECT_THAT(grid.texts("warm", "standby"), IsEmpty());
  other.disk_full = false;
  const Nanos mended = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.told("warm", "standby"); }));
  EXPECT_LT(grid.world.now - mended, 70 * k_s);
}

TEST(Standby, SaysWhatLiesReadyWhere) {
  Grid grid(quiet_options());
  grid.add("warm", [](job::Spec& spec) { spec.checkpoint.standby = true; });
  ASSERT_TRUE(grid.until([&] { return grid.told("warm", "standby"); }));
  const std::string other = grid.host("warm") == "host0" ? "host1" : "host0";
  EXPECT_THAT(grid.texts("warm", "standby"), ElementsAre(AllOf(HasSubstr(other + " keeps the newest checkpoint ready, now 1 ("))));
}

// --- Waiting gangs ---------------------------------------------------------------------------------------------------

Options kept_books() {
  Options o = quiet_options();
  o.registry = RegistryKind::sqlite;
  o.ganged = 1;
  return o;
}

TEST(Turns, TellWhenEachHostIsExpectedToBeFree) {
  Options o = kept_books();
  o.hosts = 3;
  Grid grid(o);
  grid.add("known", [](job::Spec& spec) { spec.num_nodes = 1; });
  grid.add("unknown", [](job::Spec& spec) {
    spec.num_nodes = 1;
    spec.workload.work.reset();
  });
  ASSERT_TRUE(grid.until([&] { return grid.runs("known") && grid.runs("unknown"); }));
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 3; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return !explanation(grid, "gang").empty(); }));
  grid.world.run_until(grid.world.now + 5 * k_s);
  const std::vector<std::string> lines = explanation(grid, "gang");
  EXPECT_THAT(lines, Contains(HasSubstr("waits for 3 hosts: host")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr(grid.host("known") + " when known (known) ends, expected in "))));
  EXPECT_THAT(lines, Contains(HasSubstr(grid.host("unknown") + " when unknown (unknown) ends, nobody knows when")));
  EXPECT_THAT(lines, Contains(HasSubstr("others may use them meanwhile; in ")));
  grid.world.run_until(grid.world.now + k_min);
  EXPECT_THAT(explanation(grid, "gang"), Contains(HasSubstr("these are kept for it")));
}

TEST(Turns, AreShortenedByLimits) {
  Options o = kept_books();
  Grid grid(o);
  grid.add("short", [](job::Spec& spec) {
    spec.num_nodes = 1;
    spec.workload.work.reset();
    spec.max_duration = std::chrono::minutes{5};
  });
  ASSERT_TRUE(grid.until([&] { return grid.runs("short"); }));
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  grid.laptop().user_submits();
  grid.world.run_until(grid.world.now + 10 * k_s);
  EXPECT_THAT(explanation(grid, "gang"), Contains(HasSubstr("short (short) ends, expected in 4m")));
}

TEST(Turns, LetInWhoIsDoneBefore) {
  Options o = quiet_options();
  o.ganged = 1;
  o.work = 8 * k_min;
  Grid grid(o);
  grid.add("first", [](job::Spec& spec) { spec.num_nodes = 1; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("first"); }));
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.told("gang", "kept_for_it"); }));
  grid.add("long", [](job::Spec& spec) { spec.num_nodes = 1, spec.max_duration = std::chrono::hours{1}; });
  grid.add("short", [](job::Spec& spec) { spec.num_nodes = 1, spec.max_duration = std::chrono::minutes{2}; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("short"); })) << "it will have been stopped before";
  EXPECT_FALSE(grid.runs("gang") || grid.runs("long"));
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); }));
  EXPECT_EQ(grid.job("long").machine.attempts.value, 0u);
}

TEST(Elastic, TellsWhatItWaitsFor) {
  Options o = kept_books();
  o.hosts = 3;
  o.work = 40 * k_min;
  Grid grid(o);
  grid.add("other", [](job::Spec& spec) { spec.num_nodes = 1, spec.workload.work = std::chrono::minutes{4}; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("other"); }));
  grid.add("gang", [](job::Spec& spec) {
    spec.num_nodes = 3;
    spec.gang.nodes_min = 2;
  });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); }));
  grid.world.run_until(grid.world.now + 10 * k_s);
  EXPECT_THAT(explanation(grid, "gang"), Contains("has 2 of 2..3 hosts; it grows when there are hosts for more members"));
  EXPECT_THAT(explanation(grid, "gang"), Contains(HasSubstr("placed on ")));
}

}  // namespace
}  // namespace gridctl::sim::concern_cases_test
