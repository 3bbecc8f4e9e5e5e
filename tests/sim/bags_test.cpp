// SPDX-License-Identifier: Apache-2.0
// Bags on the shipped controller: hosts lose their power, the daemon dies, links break, and each task counts once.
#include <gmock/gmock.h>

#include "bag_truth.hpp"
#include "grid.hpp"
#include "job/last_step.hpp"

namespace gridctl::sim::bags_test {
namespace {

Options bag_options(int hosts) {
  Options o = quiet_options();
  o.hosts = hosts;
  o.lost_after = 10 * k_s;
  return o;
}

void add_bag(Grid& grid, int tasks, int retries = 1) {
  grid.add("bag", [&](job::Spec& spec) {
    spec.workload.tasks = tasks;
    spec.workload.work.reset();
    spec.tasks = job::Tasks{};
    spec.tasks->retries = retries;
    spec.recovery.lost_after = std::chrono::seconds{10};
  });
}

const bag::Bag& bag_of(Grid& grid) { return grid.world.bags->read({"bag"}); }
std::uint64_t runs(const Grid& grid) { return grid.world.bags->executions({"bag"}); }

TEST(Bags, RunEachTaskOnceOnAllHosts) {
  Grid grid(bag_options(3));
  add_bag(grid, 300);
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded);
  const bag::Bag& bag = bag_of(grid);
  EXPECT_EQ(bag.progress().done, 300u);
  EXPECT_EQ(runs(grid), 300u);
  std::set<std::string> hosts;
  for (const auto& [worker, holder] : bag.workers())
    if (holder.done > 0) hosts.insert(holder.host);
  EXPECT_EQ(hosts.size(), 3u);
}

TEST(Bags, GoOnWhenAHostIsLostAndWhenTheDaemonDies) {
  Grid grid(bag_options(3));
  add_bag(grid, 500);
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().done > 50; }));
  grid.laptop().die(false);
  grid.laptop().begin();
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().done > 150; }));
  grid.world.hosts[1]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded);
  EXPECT_EQ(bag_of(grid).progress().done, 500u);
  EXPECT_LE(runs(grid), 500u + 30u) << "what the lost host held, and a few of the end";
}

// Its program takes as long as any job's.
void add_bag_with_last_step(Grid& grid, int tasks) {
  grid.add("bag", [&](job::Spec& spec) {
    spec.workload.tasks = tasks;
    spec.workload.work.reset();
    spec.tasks = job::Tasks{};
    spec.tasks->finally_run = "merge";
    spec.recovery.lost_after = std::chrono::seconds{10};
  });
}
bool runs_its_last_step(Grid& grid) {
  const registry::Job job = grid.job("bag");
  return job::is_last_step(job.spec) && std::holds_alternative<job::Running>(job.machine.phase);
}

TEST(Bags, RunTheirLastStepOnceWhenAllTasksAreDone) {
  Grid grid(bag_options(3));
  add_bag_with_last_step(grid, 100);
  ASSERT_TRUE(grid.until([&] { return runs_its_last_step(grid); }));
  EXPECT_EQ(bag_of(grid).progress().done, 100u);
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  const registry::Job job = grid.job("bag");
  EXPECT_EQ(job.state, job::JobState::succeeded);
  EXPECT_THAT(job.machine.reason_text, ::testing::StartsWith("all 100 tasks are done"));
  EXPECT_THAT(job.machine.reason_text, ::testing::HasSubstr("; finally succeeded on "));
  EXPECT_EQ(job.machine.attempts.value, 2u);
}

TEST(Bags, RunTheirLastStepElsewhereWhenItsHostIsLostAndTheDaemonDies) {
  Grid grid(bag_options(3));
  add_bag_with_last_step(grid, 50);
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().over(); }));
  grid.laptop().die(false);
  grid.laptop().begin();
  ASSERT_TRUE(grid.until([&] { return runs_its_last_step(grid); }));
  const std::string host = grid.job("bag").machine.attempt()->lead().host.value;
  grid.laptop().die(false);
  for (int i = 0; i < 3; ++i)
    if (host == "host" + std::to_string(i)) grid.world.hosts[static_cast<std::size_t>(i)]->lose_power();
  grid.laptop().begin();
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("bag").machine.attempts.value, 3u);
  EXPECT_EQ(bag_of(grid).progress().done, 50u);
}

// As `job submit --append` does.
void append(Grid& grid, int more) {
  registry::AllRecords& records = *grid.laptop().records();
  registry::Job bag = grid.job("bag");
  bag.spec.workload.tasks += more;
  ASSERT_TRUE(records.replace({"bag"}, bag.spec, *records.inputs({"bag"}), {grid.laptop().wall(), job::MoveWithdrawn{}}));
}

TEST(Bags, GoBackToTasksThatAreAddedWhileTheirLastStepRunsOrEnds) {
  Options o = bag_options(3);
  o.lease = 60 * k_min;
  Grid grid(o);
  add_bag_with_last_step(grid, 50);
  ASSERT_TRUE(grid.until([&] { return runs_its_last_step(grid); }));
  append(grid, 25);
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().tasks == 75u && !job::is_last_step(grid.job("bag").spec); }));
  ASSERT_TRUE(grid.until([&] { return runs_its_last_step(grid); }));
  EXPECT_EQ(bag_of(grid).progress().done, 75u);
  EXPECT_EQ(std::ranges::count(*grid.laptop().records()->inputs({"bag"}), job::k_tasks_role, &registry::Input::role), 1)
      << "it gets what the tasks have left now, and not what they had left before";
  // Its program ends on the host, and the daemon hears of that and of the tasks at once.
  grid.laptop().die(false);
  grid.world.run_until(grid.world.now + 30 * k_min);
  append(grid, 25);
  grid.laptop().begin();
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  const registry::Job job = grid.job("bag");
  EXPECT_EQ(job.state, job::JobState::succeeded);
  EXPECT_THAT(job.machine.reason_text, ::testing::StartsWith("all 100 tasks are done"));
  EXPECT_EQ(bag_of(grid).progress().done, 100u);
}

// A daemon that saw the end of a worker, and died before that stood in the journal.
TEST(Bags, GiveToOthersWhatAWorkerHeldOfWhichNoJobKnowsAnyMore) {
  Options o = bag_options(2);
  o.task_takes = 2 * k_s;
  Grid grid(o);
  add_bag(grid, 200);
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().done > 20 && grid.runs("bagr2"); }));
  grid.laptop().die(false);
  const job::Attempt attempt = *grid.job("bagr2").machine.attempt();
  for (std::size_t i = 0; i < 2; ++i)
    if (attempt.lead().host.value == "host" + std::to_string(i)) grid.world.hosts[i]->lose_power();
  registry::AllRecords& records = *grid.laptop().records();
  const auto happen = [&](const job::Event& what) { ASSERT_TRUE(records.apply({"bagr2"}, {grid.laptop().wall(), what})); };
  happen(job::AttemptEnded{attempt.epoch, {job::EndKind::host_rebooted, -1, 0, ""}});
  happen(job::Collected{attempt.epoch, ""});
  happen(job::CleanedUp{attempt.lead().host, attempt.epoch});
  grid.laptop().begin();
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(bag_of(grid).progress().done, 200u);
}

TEST(Bags, MakeNoMoreWorkersThanTasks) {
  Options o = bag_options(3);
  o.task_takes = k_min;
  Grid grid(o);
  grid.add("bag", [&](job::Spec& spec) {
    spec.workload.tasks = 4;
    spec.workload.work.reset();
    spec.tasks = job::Tasks{};
    spec.resources.gpus.clear();
  });
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_LE(grid.world.jobs.size(), 4u);
}

TEST(Bags, BelieveNoHostThatClaimsToHaveHadOtherOrders) {
  Options o = bag_options(2);
  o.liar = 1;
  o.lie_orders = true;
  Grid grid(o);
  add_bag(grid, 1000);
  EXPECT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded);
}

TEST(Bags, EndAsFailedWithTheTasksThatFailed) {
  Options o = bag_options(2);
  o.task_poison = 1;
  Grid grid(o);
  add_bag(grid, 5);
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::failed);
  EXPECT_EQ(grid.job("bag").machine.reason_text, "5 of 5 tasks failed: 0-4");
  EXPECT_GE(runs(grid), 10u) << "each was tried twice";
  EXPECT_LE(runs(grid), 12u) << "and two of them, for the end to come sooner, on both hosts at once";
}

// --- More urgent jobs ------------------------------------------------------------------------------------------------

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Tasks of a bag take up to twice as long as they do on average.
void add_lesser_bag(Grid& grid, int tasks, int priority = 0) {
  add_bag(grid, tasks, 0);
  grid.world.jobs.back().spec.priority = priority;
  grid.world.jobs.back().spec.checkpoint.interval = job::CheckpointPolicy::Interval::automatic;
}
void add_urgent(Grid& grid, const std::string& name = "urgent") {
  grid.add(name, [](job::Spec& spec) { spec.priority = 5; });
  grid.laptop().user_submits();
}
std::size_t told(Grid& grid, const std::string& name, const std::string& kind) { return grid.texts(name, kind).size(); }

TEST(Bags, GiveUpOneWorkerToAMoreUrgentJobAndGetItBack) {
  Options o = bag_options(2);
  o.task_takes = 20 * k_s;
  o.work = 5 * k_min;
  Grid grid(o);
  add_lesser_bag(grid, 60);
  ASSERT_TRUE(grid.until([&] { return grid.runs("bag") && grid.runs("bagr2") && bag_of(grid).progress().done > 4; }));
  add_urgent(grid);
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.runs("bag")) << "one worker is enough, and the bag's own job stays";
  EXPECT_THAT(grid.texts("urgent", "preempting"),
              ElementsAre(AllOf(HasSubstr("when these workers of bags with less priority have left: 1 of bag (the tasks"), HasSubstr("get at most 2m to end"))));
  EXPECT_THAT(grid.texts("bag", "worker_leaves"),
              ElementsAre(AllOf(HasSubstr("is needed more urgently: this worker gets no more tasks, and leaves when those that it runs have "
                                          "ended, in at most 2m"),
                                HasSubstr("job urgent of priority 5 waits"))));
  EXPECT_THAT(grid.texts("bag", "worker_left"), ElementsAre(HasSubstr("the tasks that it ran have ended")));
  const std::uint64_t before = bag_of(grid).progress().done;
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().done > before + 3; }));
  EXPECT_TRUE(grid.runs("urgent")) << "the rest of the bag goes on beside it";
  ASSERT_TRUE(grid.until([&] { return grid.ended("urgent") && grid.runs("bagr2"); })) << "it is back";
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded) << "no task was tried in vain, and none may be";
  EXPECT_EQ(bag_of(grid).progress().done, 60u);
  EXPECT_EQ(bag_of(grid).progress().retries, 0u);
  EXPECT_LE(runs(grid), 60u + 3u) << "a few of the end, on both hosts at once";
}

TEST(Bags, MakeNoRoomForAJobThatIsNotMoreUrgent) {
  Options o = bag_options(1);
  o.task_takes = 5 * k_s;
  Grid grid(o);
  add_lesser_bag(grid, 60, 5);
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().done > 4; }));
  add_urgent(grid);
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.ended("bag"));
  EXPECT_EQ(grid.job("bag").machine.attempts.value, 1u);
  EXPECT_THAT(grid.texts("urgent", "preempting"), IsEmpty());
}

TEST(Bags, MakeNoRoomIfTheirUserForbidsIt) {
  Options o = bag_options(1);
  o.task_takes = 5 * k_s;
  Grid grid(o);
  add_lesser_bag(grid, 60);
  grid.world.jobs.back().spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().done > 4; }));
  add_urgent(grid);
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.ended("bag"));
  EXPECT_EQ(grid.job("bag").machine.attempts.value, 1u);
}

TEST(Bags, LoseNoTaskAndCountNoFailureWhenTheTimeForATaskIsOver) {
  Options o = bag_options(1);
  o.task_takes = 20 * k_min;
  o.work = 3 * k_min;
  Grid grid(o);
  add_lesser_bag(grid, 1);
  ASSERT_TRUE(grid.until([&] { return grid.runs("bag"); }));
  add_urgent(grid);
  ASSERT_TRUE(grid.until([&] { return told(grid, "bag", "move_requested") == 1; }));
  const Nanos asked = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_GE(grid.world.now - asked, 2 * k_min) << "the task may end";
  EXPECT_LE(grid.world.now - asked, 3 * k_min);
  EXPECT_THAT(grid.texts("bag", "moving"), ElementsAre(HasSubstr("those that still run go back to the bag, and that is no failure")));
  EXPECT_EQ(bag_of(grid).waiting(), 1u);
  EXPECT_TRUE(bag_of(grid).troubles().empty());
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded) << "though it must not be tried again";
  EXPECT_EQ(runs(grid), 1u);
}

TEST(Bags, TakeTasksAgainWhenTheMoreUrgentJobIsGone) {
  Options o = bag_options(1);
  o.task_takes = k_min;
  Grid grid(o);
  add_lesser_bag(grid, 5);
  ASSERT_TRUE(grid.until([&] { return grid.runs("bag") && bag_of(grid).progress().held > 0; }));
  add_urgent(grid);
  ASSERT_TRUE(grid.until([&] { return told(grid, "bag", "move_requested") == 1 && bag_of(grid).progress().held == 1; }))
      << "it gives back what it has not begun";
  grid.laptop().user_cancels({"urgent"}, true);
  ASSERT_TRUE(grid.until([&] { return bag_of(grid).progress().held == 2; })) << "and gets it again";
  EXPECT_THAT(grid.texts("bag", "move_withdrawn"), ElementsAre(HasSubstr("it is no longer needed more urgently")));
  ASSERT_TRUE(grid.until([&] { return grid.ended("bag"); }));
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("bag").machine.attempts.value, 1u) << "it stays";
  EXPECT_EQ(runs(grid), 5u);
}

TEST(Bags, GetOnThoughMoreUrgentJobsComeAgainAndAgain) {
  Options o = bag_options(1);
  o.task_takes = 4 * k_min;
  o.work = k_min;
  Grid grid(o);
  add_lesser_bag(grid, 1);
  for (int i = 0; !grid.ended("bag"); ++i) {
    ASSERT_LT(i, 10);
    ASSERT_TRUE(grid.until([&] { return grid.ended("bag") || (grid.runs("bag") && bag_of(grid).progress().held == 1); }));
    const std::string name = "urgent" + std::to_string(i);
    add_urgent(grid, name);
    ASSERT_TRUE(grid.until([&] { return grid.ended(name); }));
  }
  EXPECT_EQ(grid.job("bag").state, job::JobState::succeeded);
  EXPECT_LE(grid.job("bag").machine.attempts.value, 4u) << "a task is stopped three times at most";
}

}  // namespace
}  // namespace gridctl::sim::bags_test
