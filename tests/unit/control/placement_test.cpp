// SPDX-License-Identifier: Apache-2.0
// Where jobs go: what of hosts is kept for whom, in which order jobs are asked for, what is told of it; and the mover,
// who takes running ones away.
#include "control/follow/placement.hpp"

#include "control/follow/mover.hpp"
#include "scripted_freight.hpp"
#include "two_hosts.hpp"

namespace gridctl::control::placement_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Two hosts of eight cores that answer, and whoever shapes a question.
class Places : public testing::TwoHosts {
 protected:
  struct Shaper : Concern {
    void shape(const TrackedJob& job, Question& question) const override {
      question.held = held;
      if (asked) asked(job);
    }
    [[nodiscard]] bool moves_for(std::string_view why) const override { return why == "restless"; }
    [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob&) override { return wish; }
    std::string held;
    std::function<void(const TrackedJob&)> asked;
    std::optional<MoveWish> wish;
  };
  Places() {
    concerns.push_back(std::make_unique<Shaper>());
    placement.consult(concerns);
  }
  Shaper& shaper() { return static_cast<Shaper&>(*concerns.front()); }
  const TrackedJob& wants(const std::string& id, const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}) {
    clock.pass(1s);
    return submit(id, [&](job::Spec& spec) {
      spec.resources.cpus = 1;
      shape(spec);
    });
  }
  static std::vector<job::Member> cores(const std::string& host, double cpus) {
    return {job::Member{0, {host}, EngineKind::process, {}, cpus, 0, 0}};
  }
  // Cores of a host that the job would be offered.
  double free_for(const std::string& id, const std::string& host, const std::set<std::string>& gone = {}) {
    for (const sched::HostFacts& facts : placement.question(job(id), gone).hosts)
      if (facts.name.value == host) return facts.cpus_free.value_or(facts.inventory->cpus);
    return -1;
  }
  std::vector<std::string> told(const std::string& id, const std::string& kind) {
    std::vector<std::string> texts;
    for (const auto events = *registry.events({id}, 0, 0); const registry::EventRecord& event : events)
      if (event.kind == kind) texts.push_back(event.text);
    return texts;
  }
  std::vector<std::string> queue() {
    std::vector<std::string> ids;
    for (const TrackedJob* job : placement.queue()) ids.push_back(job->id().value);
    return ids;
  }
  // Asks for a job as its attempts do, and lets it come to that.
  void ask_for(const std::string& id, Duration after = {}) {
    placement.place_after(job(id), after);
    run.fire();
  }

  testing::ScriptedFreight bulk;
  std::vector<std::unique_ptr<Concern>> concerns;
  World here{clock, run, net, registry, bulk, folders};
  Placement placement{here, book, fleet()};
};

// --- What is kept for whom -------------------------------------------------------------------------------------------

TEST_F(Places, WhatAJobHasIsNobodyElses) {
  wants("has");
  wants("asks");
  EXPECT_EQ(free_for("asks", "ada"), 8);
  book.apply({"has"}, job::Placed{cores("ada", 3), "x"});
  EXPECT_EQ(free_for("asks", "ada"), 5);
  EXPECT_EQ(free_for("asks", "bob"), 8);
  EXPECT_EQ(free_for("asks", "ada", {"has"}), 8) << "as if it held nothing";
  start("has");
  EXPECT_EQ(free_for("asks", "ada"), 5);
  end("has", {job::EndKind::exited, 0, 0, "", 0});
  EXPECT_EQ(free_for("asks", "ada"), 8) << "also while its last files are fetched";
}

TEST_F(Places, WhatAJobWasPromisedIsNobodyElsesButItsOwn) {
  wants("moves");
  wants("asks");
  EXPECT_FALSE(placement.is_promised({"moves"}));
  placement.promise({"moves"}, cores("bob", 3));
  EXPECT_TRUE(placement.is_promised({"moves"}));
  EXPECT_EQ(free_for("asks", "bob"), 5);
  EXPECT_EQ(free_for("moves", "bob"), 8);
  EXPECT_THAT(placement.hosts_of(job("moves")), ElementsAre(HostName{"bob"}));
  book.apply({"moves"}, job::Placed{cores("bob", 3), "x"});
  EXPECT_FALSE(placement.is_promised({"moves"})) << "it has it now";
  EXPECT_EQ(free_for("asks", "bob"), 5);
}

TEST_F(Places, WhatIsReservedIsGivenBackWhenItIsNot) {
  wants("urgent");
  wants("asks");
  placement.reserve({"urgent"}, cores("ada", 8));
  EXPECT_EQ(free_for("asks", "ada"), 0);
  EXPECT_EQ(free_for("urgent", "ada"), 8);
  EXPECT_THAT(placement.hosts_of(job("urgent")), ElementsAre(HostName{"ada"}));
  placement.reserve({"urgent"}, std::nullopt);
  EXPECT_EQ(free_for("asks", "ada"), 8);
  placement.reserve({"urgent"}, cores("ada", 8));
  book.apply({"urgent"}, job::Placed{cores("bob", 1), "x"});
  EXPECT_EQ(free_for("asks", "ada"), 8) << "it has found a place elsewhere";
  EXPECT_THAT(placement.hosts_of(job("urgent")), ElementsAre(HostName{"bob"}));
}

TEST_F(Places, ATurnBindsWhoComesAfterItUnlessTheyAreDoneBefore) {
  wants("before");
  wants("gang");
  wants("after");
  wants("short", [](job::Spec& spec) { spec.max_duration = 5min; });
  wants("urgent", [](job::Spec& spec) { spec.priority = 1; });
  const auto turn = [&](bool binding, std::optional<BootTime> from) {
    placement.keep_for({"gang"}, Turn{cores("ada", 8), from, binding, {"waits for 1 host"}});
  };
  turn(false, clock.boot() + 10min);
  EXPECT_EQ(free_for("after", "ada"), 8) << "others may use it meanwhile";
  turn(true, clock.boot() + 10min);
  EXPECT_EQ(free_for("after", "ada"), 0);
  EXPECT_EQ(free_for("before", "ada"), 8);
  EXPECT_EQ(free_for("urgent", "ada"), 8);
  EXPECT_EQ(free_for("gang", "ada"), 8);
  EXPECT_EQ(free_for("short", "ada"), 8);
  turn(true, clock.boot() + 5min);
  EXPECT_EQ(free_for("short", "ada"), 8) << "done just in time";
  turn(true, clock.boot() + 5min - 1ms);
  EXPECT_EQ(free_for("short", "ada"), 0);
  turn(true, std::nullopt);
  EXPECT_EQ(free_for("short", "ada"), 0) << "nobody knows when its turn comes";
  placement.reserve({"gang"}, cores("bob", 1));
  EXPECT_EQ(free_for("after", "ada"), 8) << "others make room for it elsewhere";
  placement.reserve({"gang"}, std::nullopt);
  placement.keep_for({"gang"}, std::nullopt);
  EXPECT_EQ(free_for("after", "ada"), 8);
}

TEST_F(Places, AHostThatAJobLeavesIsLeftOutUnderAllItsNames) {
  wants("job");
  const sched::Decision any = placement.decide(job("job"), placement.question(job("job")));
  ASSERT_TRUE(any.placement);
  const std::string other = any.placement->host.value == "ada" ? "bob" : "ada";
  const sched::Decision elsewhere = placement.decide(job("job"), placement.question(job("job")), &host(any.placement->host.value));
  ASSERT_TRUE(elsewhere.placement);
  EXPECT_EQ(elsewhere.placement->host.value, other);
}

// --- Placing ---------------------------------------------------------------------------------------------------------

TEST_F(Places, AJobThatFitsIsPlacedWithItsReason) {
  wants("job");
  ask_for("job");
  ASSERT_NE(job("job").state().attempt(), nullptr);
  EXPECT_EQ(job("job").state().attempt()->lead().cpus, 1);
  EXPECT_NE(job("job").state().attempt()->placement_reason, "");
  EXPECT_THAT(*registry.explanation({"job"}), Not(IsEmpty()));
  EXPECT_FALSE(job("job").state().expected) << "nobody knows its work";
}

TEST_F(Places, AJobWhoseWorkIsKnownHasWhatIsExpectedOfIt) {
  wants("job", [](job::Spec& spec) { spec.workload.work = 1000s; });
  ask_for("job");
  ASSERT_TRUE(job("job").state().expected);
  EXPECT_GT(job("job").state().expected->seconds, 1000);
}

TEST_F(Places, AJobThatDoesNotFitSaysWhyAndIsAskedForAgain) {
  wants("large", [](job::Spec& spec) { spec.resources.cpus = 9; });
  ask_for("large");
  EXPECT_EQ(job("large").state().reason, "no_provider_fits");
  EXPECT_THAT(job("large").state().reason_text, HasSubstr("0 of 2 providers fit: 2 cpus"));
  wants("has");
  book.apply({"has"}, job::Placed{cores("ada", 8), "x"});
  wants("also");
  book.apply({"also"}, job::Placed{cores("bob", 8), "x"});
  wants("waits");
  ask_for("waits");
  EXPECT_EQ(job("waits").state().reason, "waiting_for_provider");
  placement.promise({"waits"}, cores("ada", 1));
  fleet().capacity_freed();
  ask_for("waits");
  EXPECT_FALSE(placement.is_promised({"waits"})) << "what was promised is not there";
}

TEST_F(Places, WhoIsHeldBackWaitsWithThatReason) {
  wants("job", [](job::Spec& spec) { spec.resources.cpus = 9; });
  shaper().held = "the budget is used up";
  ask_for("job");
  EXPECT_EQ(job("job").state().reason, "waiting_for_provider") << "the month will end";
  EXPECT_EQ(job("job").state().reason_text, "the budget is used up");
  EXPECT_THAT(*registry.explanation({"job"}), Contains("the budget is used up"));
  wants("other");
  ask_for("other");
  EXPECT_NE(job("other").state().attempt(), nullptr) << "where there is a host that it may use";
}

TEST_F(Places, AJobIsNotPlacedTwiceNorBeforeItsTime) {
  wants("job");
  placement.place_after(job("job"), 10s);
  placement.place_after(job("job"), {});
  run.fire();
  EXPECT_EQ(job("job").state().attempt(), nullptr) << "it is asked for already, in ten seconds";
  clock.pass(10s);
  run.fire();
  EXPECT_NE(job("job").state().attempt(), nullptr);
  EXPECT_EQ(job("job").state().attempts.value, 1u);
}

TEST_F(Places, NothingIsPlacedWhileTheBookIsNotSure) {
  wants("job");
  wants("other");
  book.take({"other"}, make_error(Code::io, "the disk has failed"));
  ask_for("job");
  EXPECT_EQ(job("job").state().attempt(), nullptr) << "who knows what that one holds";
  book.refresh();
  clock.pass(200ms);
  run.fire();
  EXPECT_NE(job("job").state().attempt(), nullptr);
}

TEST_F(Places, NobodyIsPlacedBeforeTheHostsWereTried) {
  add("eve");
  ASSERT_TRUE(fleet().refresh());
  Placement fresh(here, book, fleet());
  wants("job");
  fresh.place_after(job("job"), {});
  run.fire();
  EXPECT_EQ(job("job").state().attempt(), nullptr) << "eve was not tried yet";
  for (int i = 0; i < 9; ++i) {
    clock.pass(200ms);
    run.fire();
  }
  EXPECT_EQ(job("job").state().attempt(), nullptr);
  for (int i = 0; i < 3; ++i) {
    clock.pass(200ms);
    run.fire();
  }
  EXPECT_NE(job("job").state().attempt(), nullptr) << "a dead host holds nobody up for longer than three seconds";
}

TEST_F(Places, TheMoreUrgentIsAskedForFirst) {
  wants("has", [](job::Spec& spec) { spec.resources.cpus = 8; });
  book.apply({"has"}, job::Placed{cores("ada", 8), "x"});
  wants("also");
  book.apply({"also"}, job::Placed{cores("bob", 8), "x"});
  const auto all = [](int priority) {
    return [priority](job::Spec& spec) {
      spec.resources.cpus = 8;
      spec.priority = priority;
    };
  };
  wants("first", all(0));
  wants("urgent", all(5));
  for (const char* id : {"first", "urgent"}) ask_for(id);
  for (const char* id : {"first", "urgent"}) placement.place_after(job(id), 5s);
  EXPECT_THAT(queue(), ElementsAre("urgent", "first"));
  end("has", {job::EndKind::exited, 0, 0, "", 0});
  fleet().capacity_freed();
  clock.pass(5s);
  run.fire();
  EXPECT_NE(job("urgent").state().attempt(), nullptr);
  EXPECT_EQ(job("first").state().attempt(), nullptr);
}

// Else two twins get one host: the placement of the first was committed, and told as failed.
TEST_F(Places, NothingIsPlacedWhenTheBookBecomesUnsureWhileMoreUrgentJobsAreAsked) {
  wants("has");
  book.apply({"has"}, job::Placed{cores("ada", 8), "x"});
  wants("also");
  book.apply({"also"}, job::Placed{cores("bob", 8), "x"});
  wants("first");
  wants("urgent", [](job::Spec& spec) { spec.priority = 5; });
  for (const char* id : {"first", "urgent"}) ask_for(id);
  placement.place_after(job("first"), 5s);
  placement.place_after(job("urgent"), 1h);
  end("has", {job::EndKind::exited, 0, 0, "", 0});
  fleet().capacity_freed();
  shaper().asked = [&](const TrackedJob& asked) {
    if (asked.id().value == "urgent") book.take({"also"}, make_error(Code::io, "the disk has failed"));
  };
  clock.pass(5s);
  run.fire();
  EXPECT_NE(job("urgent").state().attempt(), nullptr);
  EXPECT_EQ(job("first").state().attempt(), nullptr) << "nobody knows what the other one holds";
  book.refresh();
  clock.pass(200ms);
  run.fire();
  EXPECT_NE(job("first").state().attempt(), nullptr);
}

TEST_F(Places, RoomThatIsFreeWakesWhoWaitsForIt) {
  wants("has");
  book.apply({"has"}, job::Placed{cores("ada", 8), "x"});
  wants("also");
  book.apply({"also"}, job::Placed{cores("bob", 8), "x"});
  wants("waits", [](job::Spec& spec) { spec.resources.cpus = 8; });
  ask_for("waits");
  placement.place_after(job("waits"), 1h);
  placement.tick(clock.boot());
  EXPECT_EQ(job("waits").state().attempt(), nullptr);
  end("has", {job::EndKind::exited, 0, 0, "", 0});
  clock.pass(1s);
  placement.tick(clock.boot());
  EXPECT_EQ(job("waits").state().attempt(), nullptr) << "nobody has said that something is free";
  fleet().capacity_freed();
  clock.pass(1s);
  placement.tick(clock.boot());
  EXPECT_NE(job("waits").state().attempt(), nullptr);
}

// --- What is told ----------------------------------------------------------------------------------------------------

TEST_F(Places, AnExplanationIsWrittenWhenItIsAnother) {
  wants("job");
  placement.explain(job("job"), {"one"});
  EXPECT_THAT(*registry.explanation({"job"}), ElementsAre("one"));
  ASSERT_THAT(registry.save_explanation({"job"}, {"by another process"}), IsOk());
  placement.explain(job("job"), {"one"});
  EXPECT_THAT(*registry.explanation({"job"}), ElementsAre("by another process")) << "the same is not written again";
  placement.explain(job("job"), {"two"});
  EXPECT_THAT(*registry.explanation({"job"}), ElementsAre("two"));
}

TEST_F(Places, ARiskIsToldOnceForEachAttempt) {
  wants("job");
  placement.tell_risk(job("job"), "too late");
  EXPECT_THAT(told("job", "deadline_at_risk"), IsEmpty()) << "it runs nowhere";
  place("job", "ada", 0);
  placement.tell_risk(job("job"), "too late");
  placement.tell_risk(job("job"), "much too late");
  EXPECT_THAT(told("job", "deadline_at_risk"), ElementsAre("too late"));
  book.apply({"job"}, job::HostLost{{1}, 60s});
  place("job", "bob", 0);
  placement.tell_risk(job("job"), "again");
  EXPECT_THAT(told("job", "deadline_at_risk"), ElementsAre("too late", "again"));
}

TEST_F(Places, OnlyAnAutomaticIntervalIsTuned) {
  wants("fixed", [](job::Spec& spec) {
    spec.checkpoint.interval = job::CheckpointPolicy::Interval::fixed;
    spec.checkpoint.every = 60s;
  });
  wants("tuned");
  EXPECT_EQ(placement.interval_of(job("tuned")).every, 0s) << "before it is placed";
  place("fixed", "ada", 0);
  place("tuned", "bob", 0);
  EXPECT_EQ(placement.interval_of(job("fixed")).every, 0s);
  EXPECT_GT(placement.interval_of(job("tuned")).every, 0s);
  const Duration before = placement.interval_of(job("tuned")).every;
  registry::Checkpoint saved;
  saved.job = {"tuned"};
  saved.epoch = {1};
  saved.attempt = {1};
  saved.created_at = clock.wall();
  saved.host_number = 1;
  saved.stall = 20s;
  saved.upload = 30s;
  ASSERT_THAT(registry.commit_checkpoint(saved), IsOk());
  placement.retune(job("tuned"));
  EXPECT_NE(placement.interval_of(job("tuned")).every, before);
  EXPECT_THAT(told("tuned", "interval_tuned"), ElementsAre(HasSubstr("suggested checkpoint interval: ")));
  placement.retune(job("tuned"));
  EXPECT_THAT(told("tuned", "interval_tuned"), SizeIs(1));
  placement.retune(job("fixed"));
  EXPECT_THAT(told("fixed", "interval_tuned"), IsEmpty());
}

// --- Moves -----------------------------------------------------------------------------------------------------------

class Moved : public Places {
 protected:
  Moved() {
    mover.consult(concerns);
    bulk.script.answers("prepare", wire::encode(wire::PrepareReply{{1}, "boot"}));
    bulk.script.answers("start", wire::encode(wire::StartReply{}));
  }
  void drain(const std::string& name, bool drained, Duration within = 10min) {
    registry::Provider provider = row(name);
    provider.drained = drained;
    provider.drain_within = within;
    ASSERT_THAT(registry.update_provider(provider), IsOk());
    ASSERT_TRUE(fleet().refresh());
  }
  // Both hosts answer, a second has passed, and the mover looks.
  void look() {
    tick(1s);
    answer_polls();
    mover.tick(clock.boot());
  }
  void runs_on_ada() {
    wants("job");
    book.apply({"job"}, job::Placed{cores("ada", 1), "it was free"});
    start("job");
  }
  const job::Running* running() { return job("job").in<job::Running>(); }

  Attempts attempts{here, book, fleet(), placement};
  Mover mover{here, book, fleet(), attempts, placement};
};

TEST_F(Moved, AJobOnASoundHostIsSettledAndStays) {
  runs_on_ada();
  EXPECT_TRUE(mover.is_settled(job("job")));
  EXPECT_EQ(mover.drained_host(job("job")), nullptr);
  look();
  EXPECT_FALSE(running()->move);
  wants("waits");
  EXPECT_FALSE(mover.is_settled(job("waits")));
}

TEST_F(Moved, AJobLeavesAHostThatIsToBeEmptied) {
  runs_on_ada();
  drain("ada", true, 5min);
  EXPECT_FALSE(mover.is_settled(job("job")));
  ASSERT_NE(mover.drained_host(job("job")), nullptr);
  look();
  ASSERT_TRUE(running()->move);
  EXPECT_EQ(running()->move->why, "drained");
  EXPECT_THAT(told("job", "move_requested"), ElementsAre(HasSubstr("in at most 5m")));
  EXPECT_THAT(registry.explanation({"job"})->front(), HasSubstr("ada is being emptied: the job moves to bob"));
  look();
  EXPECT_NE(running(), nullptr) << "its next checkpoint is waited for";
  drain("ada", false);
  look();
  EXPECT_FALSE(running()->move);
  EXPECT_THAT(registry.explanation({"job"})->front(), HasSubstr("placed on ada: it was free"));
}

TEST_F(Moved, AJobThatMustLeaveIsPromisedWhereItGoes) {
  runs_on_ada();
  drain("ada", true, Duration{});
  look();
  look();
  ASSERT_NE(job("job").in<job::Stopping>(), nullptr);
  EXPECT_TRUE(placement.is_promised({"job"}));
  EXPECT_THAT(placement.hosts_of(job("job")), Contains(HostName{"bob"}));
}

TEST_F(Moved, AJobStaysWhereNoOtherHostCanTakeIt) {
  runs_on_ada();
  wants("other");
  book.apply({"other"}, job::Placed{cores("bob", 8), "x"});
  drain("ada", true);
  look();
  EXPECT_FALSE(running()->move);
  EXPECT_EQ(job("job").state().reason, "move_blocked");
  EXPECT_THAT(told("job", "move_blocked"), SizeIs(1));
  look();
  EXPECT_THAT(told("job", "move_blocked"), SizeIs(1));
}

TEST_F(Moved, AWishIsCarriedOutAsLongAsItIsWished) {
  runs_on_ada();
  shaper().wish = MoveWish{"restless"};
  MoveWish wish{"restless", "it has been there for long"};
  wish.host = {"ada"};
  mover.ask(job("job"), wish);
  ASSERT_TRUE(running()->move);
  EXPECT_EQ(running()->move->why, "restless");
  EXPECT_EQ(running()->move->host.value, "ada");
  EXPECT_THAT(told("job", "move_requested"), ElementsAre(HasSubstr("it has been there for long")));
  mover.ask(job("job"), wish);
  EXPECT_THAT(told("job", "move_requested"), SizeIs(1)) << "it moves already";
  look();
  EXPECT_TRUE(running()->move);
  shaper().wish.reset();
  look();
  EXPECT_FALSE(running()->move);
  EXPECT_THAT(told("job", "move_withdrawn"), SizeIs(1));
}

TEST_F(Moved, AWishThatCannotWaitStopsAtOnce) {
  runs_on_ada();
  MoveWish wish{"gpu_gone"};
  wish.at_once = true;
  wants("waits");
  mover.ask(job("waits"), wish);
  EXPECT_THAT(told("waits", "move_requested"), IsEmpty()) << "it runs nowhere";
  mover.ask(job("job"), wish);
  EXPECT_NE(job("job").in<job::Stopping>(), nullptr);
}

TEST_F(Moved, TheMoverLooksOnceASecond) {
  runs_on_ada();
  mover.tick(clock.boot());
  drain("ada", true);
  clock.pass(999ms);
  mover.tick(clock.boot());
  EXPECT_FALSE(running()->move);
  clock.pass(1ms);
  mover.tick(clock.boot());
  EXPECT_TRUE(running()->move);
}

}  // namespace
}  // namespace gridctl::control::placement_test
