// SPDX-License-Identifier: Apache-2.0
#include "bag/bag.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gridctl::bag::bag_test {
namespace {

constexpr Worker k_ada{1, 1}, k_bob{2, 2}, k_cyd{3, 3};

wire::TaskResult ended(Index index, std::uint64_t order, std::uint8_t exit_code = 0) {
  wire::TaskResult one;
  one.index = index;
  one.order = order;
  one.exit_code = exit_code;
  return one;
}

class ABag : public ::testing::Test {
 protected:
  void begin(std::uint64_t tasks) {
    bag.apply(Begun{tasks});
    bag.apply(Joined{k_ada, 1, "ada"});
    bag.apply(Joined{k_bob, 1, "bob"});
  }
  void grant(const Worker& worker, Range range) { bag.apply(Ordered{worker, wire::OrderKind::grant, {range}, bag.find(worker)->next_order()}); }
  void tell(const Worker& worker, std::vector<wire::TaskResult> results) {
    bag.apply(Told{worker, bag.find(worker)->results, std::move(results)});
  }
  Bag bag;
};

TEST_F(ABag, CountsATaskOnceHoweverOftenItIsTold) {
  begin(10);
  grant(k_ada, {0, 5});
  const Told told{k_ada, 0, {ended(0, 0), ended(1, 0)}};
  bag.apply(told);
  bag.apply(told);
  EXPECT_EQ(bag.progress().done, 2);
  EXPECT_EQ(bag.progress().runs, 2);
  grant(k_bob, {1, 1});
  tell(k_bob, {ended(1, 0)});
  EXPECT_EQ(bag.progress().done, 2);
  EXPECT_EQ(bag.progress().twice, 1);
}

TEST_F(ABag, GivesWhatALostHostHeldToOthersAndCountsItsLateResultsForNothing) {
  begin(10);
  grant(k_ada, {0, 5});
  tell(k_ada, {ended(0, 0)});
  EXPECT_EQ(bag.waiting(), 5);
  bag.apply(Closed{k_ada, {}});
  EXPECT_EQ(bag.waiting(), 9);
  tell(k_ada, {ended(1, 0), ended(2, 0, 3)});
  EXPECT_EQ(bag.progress().done, 1);
  EXPECT_EQ(bag.progress().late, 2);
  EXPECT_FALSE(bag.is_done(1));
  EXPECT_FALSE(bag.share(k_ada, {}));
}

TEST_F(ABag, TriesAFailedTaskOnAnotherHostAndThenIsolatesIt) {
  begin(2);
  grant(k_ada, {0, 2});
  tell(k_ada, {ended(0, 0, 1), ended(1, 0)});
  EXPECT_FALSE(bag.has_failed(0));
  EXPECT_FALSE(bag.share(k_ada, {})) << "bob has not tried it yet";
  const auto again = bag.share(k_bob, {});
  ASSERT_TRUE(again);
  bag.apply(*again);
  tell(k_bob, {ended(0, 0, 1)});
  EXPECT_TRUE(bag.has_failed(0));
  EXPECT_TRUE(bag.progress().over());
  EXPECT_EQ(bag.troubles().at(0).hosts, (std::set<std::string>{"ada", "bob"}));
  EXPECT_EQ(end_in_words(bag), "1 of 2 tasks failed: 0");
  bag.apply(Resumed{});
  EXPECT_EQ(bag.waiting(), 1);
  EXPECT_FALSE(bag.progress().over());
  EXPECT_TRUE(bag.is_done(1));
}

wire::TaskResult out_of_memory(Index index, std::uint64_t order) {
  wire::TaskResult one = ended(index, order, 137);
  one.end = wire::TaskEnd::oom;
  return one;
}

TEST_F(ABag, GivesATaskThatRanOutOfMemoryOnlyToAWorkerThatHasMore) {
  begin(4);
  bag.apply(Begun{4, 0, true});
  grant(k_ada, {0, 2});
  tell(k_ada, {out_of_memory(0, 0), ended(1, 0)});
  EXPECT_FALSE(bag.has_failed(0)) << "no retry is used up";
  EXPECT_EQ(bag.waiting(), 3);
  EXPECT_EQ(bag.waiting(0), 2);
  grant(k_bob, {2, 2});
  EXPECT_FALSE(bag.share(k_bob, {})) << "it has no more than ada";
  EXPECT_EQ(bag.hungry().at(1).list(), (std::vector<Range>{{0, 1}}));
  bag.apply(Joined{k_cyd, 1, "ada", 1});
  const auto more = bag.share(k_cyd, {});
  ASSERT_TRUE(more);
  EXPECT_EQ(more->ranges, (std::vector<Range>{{0, 1}}));
  bag.apply(*more);
  EXPECT_TRUE(bag.hungry().empty());
  tell(k_cyd, {out_of_memory(0, 0)});
  EXPECT_FALSE(bag.share(k_cyd, {}));
  EXPECT_EQ(bag.hungry().begin()->first, 2);
  bag.apply(Capped{2});
  EXPECT_TRUE(bag.has_failed(0));
  EXPECT_EQ(bag.troubles().at(0).tries, 2);
  EXPECT_EQ(bag.troubles().at(0).hosts, (std::set<std::string>{"ada"}));
  bag.apply(Resumed{});
  EXPECT_EQ(bag.waiting(0), 1);
}

TEST_F(ABag, StealsNothingFromAWorkerThatNeedsWhatItHas) {
  begin(8);
  bag.apply(Begun{8, 1, true});
  bag.apply(Joined{k_cyd, 1, "cyd", 1});
  grant(k_ada, {0, 8});
  std::vector<wire::TaskResult> all;
  for (Index index = 0; index < 8; ++index) all.push_back(index < 4 ? out_of_memory(index, 0) : ended(index, 0));
  tell(k_ada, all);
  grant(k_cyd, {0, 4});
  EXPECT_FALSE(bag.steal(k_bob, {{k_cyd, {.task_s = 60}}, {k_bob, {.task_s = 1}}}));
  bag.apply(Joined{{4, 4}, 1, "dan", 1});
  EXPECT_TRUE(bag.steal({4, 4}, {{k_cyd, {.task_s = 60}}}));
}

TEST_F(ABag, FailsATaskThatRunsOutOfMemoryWhereNothingElseWasSaid) {
  begin(1);
  bag.apply(Begun{1, 0});
  bag.apply(Closed{k_bob, {}});
  grant(k_ada, {0, 1});
  tell(k_ada, {out_of_memory(0, 0)});
  EXPECT_TRUE(bag.troubles().contains(0));
  EXPECT_TRUE(bag.hungry().empty());
}

TEST_F(ABag, BlamesWhatRanWhenAWorkerDied) {
  begin(4);
  grant(k_ada, {0, 4});
  bag.apply(Closed{k_ada, {2}});
  EXPECT_EQ(bag.troubles().at(2).tries, 1);
  EXPECT_EQ(bag.waiting(), 4);
  grant(k_bob, {0, 4});
  bag.apply(Closed{k_bob, {2}});
  EXPECT_TRUE(bag.has_failed(2));
  EXPECT_EQ(bag.waiting(), 3);
}

TEST_F(ABag, AnOrderlyStopIsNoFailure) {
  begin(4);
  grant(k_ada, {0, 4});
  wire::TaskResult stopped = ended(0, 0, 143);
  stopped.end = wire::TaskEnd::stopped;
  wire::TaskResult revoked = ended(1, 0);
  revoked.end = wire::TaskEnd::revoked;
  revoked.count = 3;
  tell(k_ada, {stopped, revoked});
  EXPECT_EQ(bag.waiting(), 4);
  EXPECT_TRUE(bag.troubles().empty());
}

TEST_F(ABag, TakesBackWhatAWorkerThatLeavesHasNotBegunButNotWhatItWillSoonHaveDone) {
  begin(10);
  grant(k_ada, {0, 4});
  const auto order = bag.recall(k_ada, {0}, {.task_s = 60});
  ASSERT_TRUE(order);
  EXPECT_EQ(order->kind, wire::OrderKind::revoke);
  EXPECT_EQ(order->ranges, (std::vector<Range>{{1, 3}}));
  EXPECT_EQ(bag.recall(k_ada, {0}, {})->ranges, order->ranges) << "nobody knows yet how long a task takes";
  EXPECT_FALSE(bag.recall(k_ada, {0}, {.task_s = 0.5}));
  bag.apply(*order);
  EXPECT_EQ(bag.waiting(), 9);
  EXPECT_FALSE(bag.recall(k_ada, {0}, {.task_s = 60})) << "it runs";
  tell(k_ada, {ended(0, 0)});
  EXPECT_FALSE(bag.recall(k_ada, {}, {}));
  bag.apply(Closed{k_ada, {}});
  EXPECT_FALSE(bag.recall(k_ada, {}, {.task_s = 60}));
}

TEST_F(ABag, GivesATaskOnceThatWasTakenBackWhileItRanAndFailed) {
  begin(2);
  grant(k_ada, {0, 2});
  bag.apply(*bag.recall(k_ada, {0}, {}));
  EXPECT_EQ(bag.waiting(), 1);
  tell(k_ada, {ended(1, 0, 1)});
  EXPECT_EQ(bag.waiting(), 1);
  EXPECT_EQ(bag.share(k_bob, {})->ranges, (std::vector<Range>{{1, 1}}));
}

TEST_F(ABag, SparesATaskOfWhichThreeRunsWereStoppedUntilItEnds) {
  begin(4);
  wire::TaskResult stopped = ended(1, 0, 143);
  stopped.end = wire::TaskEnd::stopped;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(bag.is_spared(1)) << i;
    stopped.order = bag.find(k_ada)->next_order();
    grant(k_ada, {0, 2});
    tell(k_ada, {stopped});
  }
  EXPECT_TRUE(bag.is_spared(1));
  EXPECT_FALSE(bag.is_spared(0));
  grant(k_bob, {0, 4});
  tell(k_bob, {ended(0, 0), ended(1, 0), ended(2, 0)});
  EXPECT_FALSE(bag.is_spared(1));
}

TEST_F(ABag, TakesNoWordOfAHostForWhatItWasNotGiven) {
  begin(4);
  grant(k_ada, {0, 1});
  tell(k_ada, {ended(3, 0), ended(0, 7), ended(9, 0)});
  EXPECT_EQ(bag.progress().done, 0);
}

TEST_F(ABag, SharesShrinkTowardsTheEnd) {
  begin(1000);
  const auto first = bag.share(k_ada, {});
  ASSERT_TRUE(first);
  EXPECT_LE(first->ranges.front().count, 2) << "nobody knows yet how long a task takes";
  bag.apply(*first);
  const auto fast = bag.share(k_bob, {.task_s = 0.001});
  ASSERT_TRUE(fast);
  EXPECT_LE(fast->ranges.front().count, 500);
  EXPECT_GE(fast->ranges.front().count, 200);
  const auto slow = bag.share(k_bob, {.task_s = 60});
  ASSERT_TRUE(slow);
  EXPECT_LE(slow->ranges.front().count, 2) << "what a worker holds nobody else can do";
}

// Tasks that fail now and then fail on every host. Five failures on each, and the bag would have waited for ever.
TEST_F(ABag, IsNotStuckWhenItsTasksFailNowAndThen) {
  bag.apply(Begun{100, 3});
  bag.apply(Joined{k_ada, 1, "ada"});
  bag.apply(Joined{k_bob, 1, "bob"});
  const auto fails_here_only = [&](const Worker& here, const Worker& there, Index index) {
    grant(here, {index, 1});
    tell(here, {ended(index, bag.find(here)->next_order() - 1, 1)});
    grant(there, {index, 1});
    tell(there, {ended(index, bag.find(there)->next_order() - 1)});
  };
  for (Index index = 0; index < 5; ++index) fails_here_only(k_ada, k_bob, index);
  EXPECT_TRUE(bag.find(k_ada)->is_shunned());
  EXPECT_FALSE(bag.share(k_ada, {})) << "bob has no trouble";
  EXPECT_TRUE(bag.share(k_bob, {}));
  for (Index index = 5; index < 10; ++index) fails_here_only(k_bob, k_ada, index);
  EXPECT_FALSE(bag.find(k_ada)->is_shunned()) << "it has done some since";
  EXPECT_TRUE(bag.share(k_ada, {}));
  for (Index index = 10; index < 15; ++index) fails_here_only(k_ada, k_bob, index);
  bag.apply(Closed{k_bob, {}});
  EXPECT_TRUE(bag.find(k_ada)->is_shunned());
  EXPECT_TRUE(bag.share(k_ada, {})) << "there is no other worker";
}

TEST_F(ABag, APaceIsNotThatOfTheStartOfAProgram) {
  const auto took = [](std::uint32_t ms) {
    wire::TaskResult one;
    one.ms = ms;
    return one;
  };
  Pace pace;
  pace.take({took(2500)});
  EXPECT_DOUBLE_EQ(pace.task_s, 2.5) << "nothing else is known";
  pace.take({took(1)});
  EXPECT_DOUBLE_EQ(pace.task_s, 0.001);
  Pace together;
  together.take({took(2500), took(2)});
  EXPECT_NEAR(together.task_s, 0.002, 1e-9);
  for (int batch = 0; batch < 20; ++batch) together.take({took(2), took(2), took(2)});
  together.take({took(40), took(40)});
  EXPECT_GT(together.task_s, 0.01) << "later on the longest counts";
  EXPECT_LT(together.task_s, 0.02) << "and one batch does not decide";
}

TEST_F(ABag, ATaskThatAlsoRunsElsewhereIsNotGivenUp) {
  bag.apply(Begun{1, 0});
  bag.apply(Joined{k_ada, 1, "ada"});
  bag.apply(Joined{k_bob, 1, "bob"});
  grant(k_ada, {0, 1});
  grant(k_bob, {0, 1});
  tell(k_ada, {ended(0, 0, 1)});
  EXPECT_FALSE(bag.progress().over()) << "bob's run decides";
  tell(k_bob, {ended(0, 0, 1)});
  EXPECT_EQ(bag.progress().failed, 1);
}

TEST_F(ABag, WaitsForAnotherHostBeforeItGivesATaskUp) {
  bag.apply(Begun{4});
  bag.apply(Joined{k_ada, 1, "ada"});
  grant(k_ada, {0, 1});
  tell(k_ada, {ended(0, 0, 1)});
  const auto other = bag.share(k_ada, {});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->ranges, (std::vector<Range>{{1, 2}})) << "there is other work, and bob may come";
  grant(k_ada, {1, 3});
  const auto again = bag.share(k_ada, {.task_s = 0.01});
  ASSERT_TRUE(again) << "bob has not come";
  bag.apply(*again);
  bag.apply(Joined{k_bob, 1, "bob"});
  tell(k_ada, {ended(0, again->number, 1)});
  EXPECT_FALSE(bag.has_failed(0)) << "bob is here now";
  const auto there = bag.share(k_bob, {});
  ASSERT_TRUE(there);
  EXPECT_EQ(there->ranges.front().first, 0u);
}

TEST_F(ABag, IsNotSharedWhereNothingIsLeftWorthSharing) {
  begin(10);
  grant(k_bob, {0, 1});
  const auto all = bag.share(k_ada, {.task_s = 0.01});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->ranges.front().count, 9);
}

TEST_F(ABag, TakesFromTheSlowWhatTheyHaveNotBegunAndRunsTheirLastTaskTwice) {
  begin(10);
  grant(k_ada, {0, 10});
  const std::map<Worker, Pace> paces{{k_ada, {.task_s = 5}}, {k_bob, {.task_s = 0.5}}};
  const auto steal = bag.steal(k_bob, paces);
  ASSERT_TRUE(steal && steal->revoke);
  EXPECT_EQ(steal->grant.ranges, (std::vector<Range>{{2, 8}}));
  bag.apply(*steal->revoke);
  bag.apply(steal->grant);
  EXPECT_FALSE(bag.steal(k_bob, paces)) << "it has something to do";
  std::vector<wire::TaskResult> results;
  for (Index index = 2; index < 10; ++index) results.push_back(ended(index, 0));
  tell(k_bob, results);
  tell(k_ada, {ended(0, 0)});
  const auto twice = bag.steal(k_bob, paces);
  ASSERT_TRUE(twice);
  EXPECT_FALSE(twice->revoke);
  EXPECT_EQ(twice->grant.ranges, (std::vector<Range>{{1, 1}}));
  bag.apply(twice->grant);
  tell(k_bob, {ended(1, 1)});
  EXPECT_TRUE(bag.progress().over());
  EXPECT_FALSE(bag.steal(k_ada, paces)) << "nothing is left";
}

// Its slow worker runs it on; a third one that is idle is not to run it too.
TEST_F(ABag, TakesNothingFromAWorkerThatAnotherHasDoneMeanwhile) {
  begin(2);
  bag.apply(Joined{k_cyd, 1, "cyd"});
  const std::map<Worker, Pace> paces{{k_ada, {10, 1}}, {k_bob, {0.1, 1}}, {k_cyd, {0.1, 1}}};
  grant(k_ada, {0, 1});
  grant(k_bob, {1, 1});
  tell(k_bob, {ended(1, 0)});
  ASSERT_TRUE(bag.steal(k_bob, paces));
  grant(k_bob, {0, 1});
  tell(k_bob, {ended(0, 1)});
  EXPECT_FALSE(bag.steal(k_cyd, paces));
}

// Random lives: whatever happens, in whatever order, each task counts once, and all get done.
TEST(Bag, LosesNothingAndCountsNothingTwice) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 draw(seed);
    Bag bag;
    const std::uint64_t tasks = 1 + draw() % 200;
    bag.apply(Begun{tasks, 1, true});
    std::vector<Worker> alive;
    std::uint32_t workers = 0;
    std::map<Worker, std::vector<std::pair<Index, std::uint64_t>>> queue;  // held there, by order
    std::map<Worker, std::uint64_t> orders;
    std::map<Worker, Pace> paces;
    const auto give = [&](const Ordered& order) {
      for (const Range& range : order.ranges)
        for (auto one = bag.troubles().lower_bound(range.first); one != bag.troubles().end() && one->first < range.end(); ++one)
          ASSERT_TRUE(order.kind != wire::OrderKind::grant || one->second.level <= bag.find(order.worker)->level);
      bag.apply(order);
      for (const Range& range : order.ranges) {
        const std::uint64_t number = orders[order.worker]++;
        if (order.kind != wire::OrderKind::grant) continue;
        for (Index index = range.first; index < range.end(); ++index) queue[order.worker].emplace_back(index, number);
      }
    };
    for (int step = 0; step < 20'000 && !bag.progress().over(); ++step) {
      if (alive.size() < 2 || (alive.size() < 4 && draw() % 10 == 0)) {
        alive.push_back({++workers, workers});
        bag.apply(Joined{alive.back(), 1, "host" + std::to_string(draw() % 3), bag.hungry().empty() ? draw() % 3 / 2 : bag.hungry().begin()->first});
        paces[alive.back()] = {.task_s = (draw() % 50 + 1) / 10.0};
      }
      const Worker worker = alive[draw() % alive.size()];
      const auto& [index, number] = queue[worker].empty() ? std::pair<Index, std::uint64_t>{} : queue[worker].front();
      switch (draw() % 8) {
        case 0:
        case 1:
          if (const auto order = bag.share(worker, {.task_s = (draw() % 100 + 1) / 100.0})) give(*order);
          else if (const auto steal = bag.steal(worker, paces)) {
            if (steal->revoke) give(*steal->revoke);
            give(steal->grant);
          }
          break;
        case 2:
          if (draw() % 20 != 0) break;
          bag.apply(Closed{worker, {}});
          std::erase(alive, worker);
          break;
        default: {
          if (queue[worker].empty()) break;
          const std::uint64_t before = bag.progress().done;
          const bool was = bag.is_done(index);
          // Every fifth task needs a worker of level 1, every tenth one of level 2.
          const std::uint64_t level = bag.find(worker)->level, needs = index % 10 == 0 ? 2 : index % 5 == 0 ? 1 : 0;
          bag.apply(Told{worker, bag.find(worker)->results, {level < needs ? out_of_memory(index, number) : ended(index, number, draw() % 20 == 0 ? 1 : 0)}});
          ASSERT_LE(bag.progress().done, before + (was ? 0 : 1));
          queue[worker].erase(queue[worker].begin());
        }
      }
      const Progress now = bag.progress();
      std::uint64_t done = 0;
      for (Index one = 0; one < tasks; ++one) done += bag.is_done(one) ? 1 : 0;
      ASSERT_EQ(now.done, done);
      ASSERT_GE(now.done + now.failed + now.held + bag.waiting(), tasks) << "a task is lost";
    }
    ASSERT_TRUE(bag.progress().over()) << seed;
  }
}

}  // namespace
}  // namespace gridctl::bag::bag_test
