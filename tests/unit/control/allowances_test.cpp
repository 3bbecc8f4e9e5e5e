// SPDX-License-Identifier: Apache-2.0
// What hosts are told of the limits of the jobs that they run.
#include "control/follow/allowances.hpp"

#include "followed_jobs.hpp"
#include "registry/registry.hpp"

namespace gridctl::control::allowances_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::DoubleNear;

class Allowed : public testing::FollowedJobs {
 protected:
  // Hours until a program that runs has to end, as its host is told.
  std::optional<double> hours(const std::string& id) {
    const auto limits = allowances.running(job(id));
    if (!limits || !limits->run_until) return std::nullopt;
    return seconds(*limits->run_until - clock.boot()) / 3600;
  }
  static Duration nanoseconds_of(double hours) { return std::chrono::nanoseconds{static_cast<std::int64_t>(hours * 3.6e12)}; }
  static auto about(double hours) { return ::testing::Optional(DoubleNear(hours, 1e-6)); }

  Allowances allowances{World{clock, run, net, registry, freight, folders}, book};
};

TEST_F(Allowed, AJobWithoutLimitsMayDoWhatItWants) {
  submit("free");
  submit("soft", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, 1h, false}; });
  for (const char* id : {"free", "soft"}) {
    EXPECT_FALSE(allowances.concern(job(id))) << id;
    place(id, "ada", 2, false);
    EXPECT_FALSE(allowances.at_start(job(id))) << id;
    start(id);
    EXPECT_FALSE(allowances.running(job(id))) << id;
  }
}

TEST_F(Allowed, EachLimitIsAConcern) {
  submit("budget", [](job::Spec& spec) { spec.budget_total = 1; });
  submit("long", [](job::Spec& spec) { spec.max_duration = 1h; });
  submit("hard", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, 1h, true}; });
  submit("replica", [](job::Spec& spec) { spec.twin_of = {"budget"}; });
  submit("free");
  for (const char* id : {"budget", "long", "hard", "replica"}) EXPECT_TRUE(allowances.concern(job(id))) << id;
  EXPECT_FALSE(allowances.concern(job("free")));
  ASSERT_THAT(registry.save_budget({"ada", 5}), IsOk());
  clock.pass(1s);
  EXPECT_TRUE(allowances.concern(job("free"))) << "a month's budget may be meant for it";
}

TEST_F(Allowed, RunningTimeIsWhatFormerAttemptsHaveLeft) {
  submit("long", [](job::Spec& spec) { spec.max_duration = 30min; });
  place("long", "ada", 0);
  EXPECT_THAT(hours("long"), about(0.5));
  clock.pass(10min);
  EXPECT_THAT(hours("long"), about(20.0 / 60));
  book.apply({"long"}, job::HostLost{job("long").state().epoch, 60s});
  EXPECT_FALSE(allowances.running(job("long"))) << "nothing runs";
  clock.pass(2h);
  place("long", "bob", 0, false);
  const auto start_with = allowances.at_start(job("long"));
  ASSERT_TRUE(start_with);
  EXPECT_EQ(start_with->run, 20min);
  EXPECT_EQ(start_with->run_limit, "max_duration");
  EXPECT_FALSE(start_with->time_until);
  EXPECT_FALSE(allowances.running(job("long"))) << "its program does not run yet";
  start("long");
  EXPECT_EQ(allowances.running(job("long"))->run_limit, "max_duration");
  clock.pass(25min);
  EXPECT_THAT(hours("long"), about(0)) << "not less than nothing";
}

TEST_F(Allowed, ATwinRunsAsLongAsItsOwnAttemptsHaveLeft) {
  submit("leader", [](job::Spec& spec) {
    spec.max_duration = 30min;
    spec.twins = 2;
  });
  submit("second", [](job::Spec& spec) {
    spec.max_duration = 30min;
    spec.twin_of = {"leader"};
  });
  place("leader", "ada", 0);
  clock.pass(20min);
  place("second", "bob", 0, false);
  EXPECT_EQ(allowances.at_start(job("second"))->run, 30min);
  start("second");
  clock.pass(4min);
  EXPECT_THAT(hours("leader"), about(6.0 / 60));
  EXPECT_THAT(hours("second"), about(26.0 / 60));
}

// A registry that cannot say what was used.
struct Unreadable : registry::Registry {
  using Registry::Registry;
  explicit Unreadable(registry::Registry&& whole) : Registry(std::move(whole)) {}
  Result<registry::Spent> spent(const JobId& id, WallTime now) override {
    return fails ? make_error(Code::io, "the disk is full") : Registry::spent(id, now);
  }
  bool fails = false;
};

TEST_F(Allowed, WhatCannotBeReadLiftsNoLimit) {
  Unreadable torn(*registry::Registry::open(dir.path()));
  Allowances asked{World{clock, run, net, torn, freight, folders}, book};
  submit("long", [](job::Spec& spec) { spec.max_duration = 30min; });
  submit("dear", [](job::Spec& spec) { spec.budget_total = 10; });
  torn.fails = true;
  place("long", "ada", 0, false);
  place("dear", "bob", 1, false);
  EXPECT_EQ(asked.at_start(job("long"))->run, 30min) << "at the most";
  EXPECT_LE(asked.at_start(job("dear"))->run, 10h);
  start("long");
  start("dear");
  for (const char* id : {"long", "dear"}) EXPECT_FALSE(asked.running(job(id))) << "it keeps what it was told: " << id;
  torn.fails = false;
  EXPECT_TRUE(asked.running(job("long"))->run_until);
  const auto told = asked.running(job("long"));
  clock.pass(5min);
  torn.fails = true;
  EXPECT_FALSE(asked.running(job("long"))) << "what it has used since is not known";
  torn.fails = false;
  EXPECT_EQ(asked.running(job("long"))->run_until, told->run_until);
}

TEST_F(Allowed, AHardDeadlineIsToldAsATime) {
  submit("due", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, 1h, true}; });
  const BootTime due = clock.boot() + 1h;
  clock.pass(15min);
  place("due", "ada", 3, false);
  const auto begins = allowances.at_start(job("due"));
  ASSERT_TRUE(begins);
  EXPECT_FALSE(begins->run);
  EXPECT_EQ(begins->time_until, due);
  start("due");
  EXPECT_EQ(allowances.running(job("due"))->time_until, due);
  EXPECT_FALSE(allowances.running(job("due"))->run_until);
  clock.pass(2h);
  submit("late", [](job::Spec& spec) { spec.deadline = job::Deadline{WallTime{1}, {}, true}; });
  place("late", "bob", 0, false);
  EXPECT_EQ(allowances.at_start(job("late"))->time_until, clock.boot()) << "it is over";
}

TEST_F(Allowed, ABudgetLastsAsLongAsItsPriceLets) {
  submit("dear", [](job::Spec& spec) { spec.budget_total = 10; });
  place("dear", "ada", 0);
  EXPECT_FALSE(hours("dear")) << "nothing is used up";
  book.apply({"dear"}, job::PriceChanged{job("dear").state().epoch, 2});
  const double reserve = 2 * 32.0 / 3600;
  EXPECT_THAT(hours("dear"), about((10 - reserve) / 2));
  EXPECT_EQ(allowances.running(job("dear"))->run_limit, "budget");
  clock.pass(1h);
  EXPECT_THAT(hours("dear"), about((8 - reserve) / 2));
}

TEST_F(Allowed, WhatIsShortestIsTheLimitThatIsNamed) {
  const auto both = [](double usd) {
    return [usd](job::Spec& spec) {
      spec.budget_total = usd;
      spec.max_duration = 2h;
    };
  };
  submit("rich", both(100));
  submit("poor", both(1));
  place("rich", "ada", 1);
  place("poor", "bob", 1);
  EXPECT_EQ(allowances.running(job("rich"))->run_limit, "max_duration");
  EXPECT_THAT(hours("rich"), about(2));
  EXPECT_EQ(allowances.running(job("poor"))->run_limit, "budget");
}

TEST_F(Allowed, TwinsUseUpTheBudgetOfTheirLeaderTogether) {
  submit("leader", [](job::Spec& spec) {
    spec.budget_total = 10;
    spec.twins = 2;
  });
  submit("second", [](job::Spec& spec) { spec.twin_of = {"leader"}; });
  submit("other");
  place("leader", "ada", 2);
  place("second", "bob", 3);
  place("other", "eve", 100);
  const double together = (10 - 5 * 32.0 / 3600) / 5;
  for (const char* id : {"leader", "second"}) {
    EXPECT_FALSE(allowances.running(job(id))) << "a daemon before us may have told it something else";
    allowances.reported(job(id), nanoseconds_of(together));
  }
  EXPECT_THAT(hours("leader"), about(together));
  EXPECT_THAT(hours("second"), about(together));
  EXPECT_EQ(allowances.running(job("second"))->run_limit, "budget");
}

// A worker of the bag whose first one is `leader`; it begins as soon as others let it.
struct OfABag : Allowed {
  void worker(const std::string& id, const std::string& host, double usd_per_hour) {
    submit(id, [&](job::Spec& spec) {
      spec.tasks = job::Tasks{};
      if (id == "leader") spec.budget_total = 10;
      else spec.twin_of = {"leader"};
    });
    place(id, host, usd_per_hour, false);
  }
};

TEST_F(OfABag, WorkersOnOneHostPayItOnce) {
  worker("leader", "ada", 2);
  EXPECT_THAT(seconds(*allowances.at_start(job("leader"))->run) / 3600, DoubleNear((10 - 2 * 32.0 / 3600) / 2, 1e-6));
  start("leader");
  worker("second", "ada", 2);
  const auto begins = allowances.at_start(job("second"));
  EXPECT_FALSE(begins->waits) << "the other has paid for the host";
  EXPECT_THAT(seconds(*begins->run) / 3600, DoubleNear((10 - 2 * 32.0 / 3600) / 2, 1e-6));
  EXPECT_EQ(price_with_twins(book, job("leader")), 2);
  worker("third", "bob", 3);
  EXPECT_EQ(price_with_twins(book, job("leader")), 5);
}

TEST_F(OfABag, SilentWorkersNeverSpendMoreThanIsLeftTogether) {
  worker("leader", "ada", 2);
  const double alone = seconds(*allowances.at_start(job("leader"))->run) / 3600;
  start("leader");
  worker("second", "bob", 2);
  EXPECT_EQ(allowances.at_start(job("second"))->run, 20s) << "the other holds the rest; what is kept back is enough to begin";
  start("second");
  worker("third", "eve", 2);
  EXPECT_TRUE(allowances.at_start(job("third"))->waits) << "12 s of its own are not worth to begin with";
  EXPECT_LE(2 * (alone + 20.0 / 3600), 10) << "whatever the hosts hear from now on";
  const double share = (10 - 6 * 32.0 / 3600) / 6;
  EXPECT_THAT(hours("leader"), about(share)) << "it is told to do with less";
  EXPECT_THAT(hours("second"), ::testing::Optional(::testing::Lt(1.0 / 60))) << "but may not have heard of it";
  EXPECT_TRUE(allowances.at_start(job("third"))->waits);
  allowances.reported(job("leader"), nanoseconds_of(share));
  EXPECT_THAT(hours("second"), about(share));
  const auto begins = allowances.at_start(job("third"));
  EXPECT_FALSE(begins->waits);
  EXPECT_THAT(seconds(*begins->run) / 3600, DoubleNear(share, 1e-6));
}

TEST_F(OfABag, WhoWouldEndAtOnceWaitsUntilOthersHaveGiven) {
  worker("leader", "ada", 2000);  // what is kept back is a tenth of the budget: 1.8 seconds of two hosts
  EXPECT_FALSE(allowances.at_start(job("leader"))->waits);
  start("leader");
  worker("second", "bob", 2000);
  EXPECT_TRUE(allowances.at_start(job("second"))->waits);
}

TEST_F(OfABag, WorkersThatHaveNothingYetDoNotWaitForEachOther) {
  worker("leader", "ada", 2000);
  worker("second", "bob", 2000);  // 18 seconds of one of them are left
  EXPECT_FALSE(allowances.at_start(job("leader"))->waits) << "nobody will ever give it more";
  EXPECT_TRUE(allowances.at_start(job("second"))->waits) << "now the first has it";
}

TEST_F(OfABag, AfterADaemonsStartEachWorkerKeepsWhatItHas) {
  for (const auto& [id, host] : {std::pair("leader", "ada"), std::pair("second", "bob"), std::pair("third", "eve")}) worker(id, host, 2), start(id);
  const double share = (10 - 6 * 32.0 / 3600) / 6;
  for (const char* id : {"leader", "second"}) {
    EXPECT_FALSE(allowances.running(job(id)));
    allowances.reported(job(id), nanoseconds_of(share));
    EXPECT_THAT(hours(id), about(share)) << "the third may hold all that is left, and this is no reason to end it";
  }
  EXPECT_FALSE(allowances.running(job("third")));
  allowances.reported(job("third"), std::nullopt);
  EXPECT_THAT(hours("third"), about(share)) << "it had no limit";
}

TEST_F(Allowed, ATinyChangeIsNoNewsForAHost) {
  submit("dear", [](job::Spec& spec) { spec.budget_total = 10; });
  place("dear", "ada", 1);
  const auto first = allowances.running(job("dear"));
  book.apply({"dear"}, job::PriceChanged{job("dear").state().epoch, 1.000001});  // 36 ms of ten hours
  EXPECT_EQ(allowances.running(job("dear")), first);
  book.apply({"dear"}, job::PriceChanged{job("dear").state().epoch, 1.0001});  // four seconds
  EXPECT_LT(allowances.running(job("dear"))->run_until, first->run_until);
}

TEST_F(Allowed, ABudgetOfTheMonthBindsItsOwnersJobsThatCost) {
  submit("adas", [](job::Spec& spec) { spec.owner = "ada"; });
  submit("free", [](job::Spec& spec) { spec.owner = "ada"; });
  submit("bobs", [](job::Spec& spec) { spec.owner = "bob"; });
  place("adas", "a", 2);
  place("free", "b", 0);
  place("bobs", "c", 2);
  ASSERT_THAT(registry.save_budget({"ada", 12}), IsOk());
  clock.pass(1s);
  const double spent = 2.0 / 3600, reserve = 2 * 32.0 / 3600;
  EXPECT_THAT(hours("adas"), about((12 - spent - reserve) / 2));
  EXPECT_EQ(allowances.running(job("adas"))->run_limit, k_limit_month);
  EXPECT_FALSE(hours("free"));
  EXPECT_FALSE(hours("bobs"));
}

TEST_F(Allowed, OfTwoBudgetsTheSmallerBinds) {
  submit("adas", [](job::Spec& spec) { spec.owner = "ada"; });
  place("adas", "a", 2);
  ASSERT_THAT(registry.save_budget({"ada", 12}), IsOk());
  ASSERT_THAT(registry.save_budget({"", 6}), IsOk());
  const double reserve = 2 * 32.0 / 3600;
  EXPECT_THAT(hours("adas"), about((6 - reserve) / 2));
}

TEST_F(Allowed, ABudgetIsKnownWithinASecondAndAtOnceWhenSomethingStarts) {
  submit("runs");
  submit("comes");
  place("runs", "a", 2);
  place("comes", "b", 2, false);
  EXPECT_FALSE(allowances.running(job("runs")));
  ASSERT_THAT(registry.save_budget({"", 12}), IsOk());
  clock.pass(999ms);
  EXPECT_FALSE(allowances.running(job("runs"))) << "budgets are not read for each job anew";
  EXPECT_TRUE(allowances.at_start(job("comes"))) << "it would have no limit until the next poll";
  EXPECT_TRUE(allowances.running(job("runs")));
}

TEST_F(Allowed, ABudgetThatIsGoneIsToldToWhoKnewIt) {
  submit("runs");
  place("runs", "a", 2);
  ASSERT_THAT(registry.save_budget({"", 12}), IsOk());
  EXPECT_TRUE(hours("runs"));
  ASSERT_THAT(registry.remove_budget(""), IsOk());
  clock.pass(1s);
  const auto told = allowances.running(job("runs"));
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->run_until);
  allowances.forgotten({"runs"});
  EXPECT_FALSE(allowances.running(job("runs"))) << "nobody was told anything";
}

TEST_F(Allowed, WhatIsLeftOfAMonthIsDealtOutOnce) {
  ASSERT_THAT(registry.save_budget({"ada", 12}), IsOk());
  const auto adas = [](job::Spec& spec) { spec.owner = "ada"; };
  submit("first", adas);
  submit("second", adas);
  place("first", "a", 2);
  EXPECT_THAT(hours("first"), about((12 - 2 * 32.0 / 3600) / 2)) << "alone it gets all of it";
  place("second", "b", 2, false);
  const auto begins = allowances.at_start(job("second"));
  ASSERT_TRUE(begins);
  EXPECT_EQ(begins->run, 20s) << "the other holds the rest; what is kept back for saving is enough to begin";
  EXPECT_EQ(begins->run_limit, k_limit_month);
  start("second");
  const double half = (12 - 4 * 32.0 / 3600) / 4;
  EXPECT_THAT(hours("first"), about(half)) << "it is told to do with its share";
  EXPECT_THAT(hours("second"), ::testing::Optional(::testing::Lt(1.0 / 60))) << "but may not have heard of it";
  allowances.reported(job("first"), std::chrono::nanoseconds{static_cast<std::int64_t>(half * 3.6e12)});
  EXPECT_THAT(hours("second"), ::testing::Optional(DoubleNear(half, 1e-3))) << "now it has";
}

TEST_F(Allowed, WhatRanBeforeUsMayHoldAllOfAMonth) {
  ASSERT_THAT(registry.save_budget({"", 12}), IsOk());
  submit("before");
  submit("ended");
  submit("now");
  place("before", "a", 2);  // nobody here has told it anything
  place("ended", "b", 50);
  end("ended", {job::EndKind::exited, 0, 0, "", 0});
  place("now", "c", 2);
  EXPECT_THAT(hours("now"), about(0));
  end("before", {job::EndKind::exited, 0, 0, "", 0});
  EXPECT_THAT(hours("now"), about((12 - 2 * 32.0 / 3600) / 2)) << "what has ended counts for nothing";
}

TEST_F(Allowed, AMonthThatIsUsedUpLetsNothingBegin) {
  ASSERT_THAT(registry.save_budget({"", 12}), IsOk());
  ASSERT_THAT(registry.note_used_up("", month_of(clock.wall()).name), IsOk());
  submit("comes");
  place("comes", "a", 2, false);
  const auto begins = allowances.at_start(job("comes"));
  ASSERT_TRUE(begins);
  EXPECT_EQ(begins->run, 0s);
}

}  // namespace
}  // namespace gridctl::control::allowances_test
