// SPDX-License-Identifier: Apache-2.0
// Each concern of the shipped controller, alone in a world without faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "grid.hpp"
#include "network.hpp"
#include "truth.hpp"

namespace gridctl::sim::concerns_test {
namespace {

TEST(Limits, AJobThatHasUsedUpItsBudgetIsStoppedWithinIt) {
  Options o = quiet_options();
  o.prices = {6, 6};
  Grid grid(o);
  grid.add("dear", [](job::Spec& spec) { spec.budget_total = 0.6; });  // six minutes
  ASSERT_TRUE(grid.until([&] { return grid.ended("dear"); }));
  EXPECT_EQ(grid.job("dear").state, job::JobState::cancelled);
  EXPECT_EQ(grid.job("dear").machine.limit, "budget");
  const auto spent = grid.laptop().records()->spent({"dear"}, grid.laptop().wall());
  EXPECT_LE(spent->usd, 0.6);
  EXPECT_GT(spent->usd, 0.4);
  EXPECT_GT(grid.job("dear").machine.head.value, 0u) << "it saves first";
}

TEST(Limits, RunningTimeAndAHardDeadlineStopASoftOneIsTold) {
  Grid grid([] {
    Options o = quiet_options();
    o.hosts = 3;
    return o;
  }());
  grid.add("long", [](job::Spec& spec) { spec.max_duration = std::chrono::minutes{3}; });
  grid.add("hard", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, std::chrono::minutes{4}, true}; });
  grid.add("soft", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, std::chrono::minutes{5}, false}; });
  ASSERT_TRUE(grid.until([&] { return grid.ended("long") && grid.ended("hard") && grid.ended("soft"); }));
  EXPECT_EQ(grid.job("long").machine.limit, "max_duration");
  EXPECT_EQ(grid.job("hard").machine.limit, "deadline");
  EXPECT_EQ(grid.job("soft").state, job::JobState::succeeded);
  EXPECT_TRUE(grid.job("soft").machine.late);
}

TEST(Budgets, AMonthThatIsUsedUpStopsWhatCostsAndLeavesFreeHosts) {
  Options o = quiet_options();
  o.prices = {6, 6};
  Grid grid(o);
  grid.add("adas", [](job::Spec& spec) { spec.owner = "ada"; });
  grid.add("bobs", [](job::Spec& spec) { spec.owner = "bob"; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("adas") && grid.runs("bobs"); }));
  grid.laptop().user_budgets("ada", 0.3);
  ASSERT_TRUE(grid.until([&] { return grid.ended("adas"); }));
  EXPECT_EQ(grid.job("adas").machine.limit, "month_budget");
  EXPECT_TRUE(grid.runs("bobs"));
  grid.laptop().user_resumes({"adas"});
  ASSERT_TRUE(grid.until([&] { return grid.job("adas").reason == "waiting_for_provider"; }));
  grid.laptop().user_prices(0, 0);
  grid.laptop().user_prices(1, 0);
  ASSERT_TRUE(grid.until([&] { return grid.runs("adas"); })) << "a host that costs nothing may be used";
}

// In five minutes, of the job's ten.
struct Ending {
  explicit Ending(const Options& options) : grid(options) {
    grid.add("long");
    EXPECT_TRUE(grid.until([&] { return grid.runs("long") && grid.job("long").machine.head.value > 0; }));
    here = SimNetwork::host_of({grid.host("long")});
    at = WallTime{grid.laptop().wall().ms + 5 * 60'000};
    grid.laptop().user_ends(here, at);
  }
  [[nodiscard]] Host& host() { return *grid.world.hosts[static_cast<std::size_t>(here)]; }
  Grid grid;
  int here = 0;
  WallTime at;
};

TEST(Ends, AJobSavesBeforeItsHostEndsAndGoesOnElsewhere) {
  Ending world(quiet_options());
  Grid& grid = world.grid;
  ASSERT_TRUE(grid.until([&] { return grid.runs("long") && grid.host("long") != world.host().name().value; }));
  EXPECT_LT(grid.laptop().wall(), world.at) << "it has left before";
  EXPECT_GT(grid.laptop().wall().ms, world.at.ms - 3 * 60'000) << "and not long before";
  EXPECT_TRUE(grid.told("long", "move_requested"));
  EXPECT_NE(grid.texts("long", "move_requested").front().find("ends soon"), std::string::npos);
  EXPECT_EQ(grid.texts("long", "moving").front().find("no further checkpoint"), std::string::npos) << "it has saved";
  ASSERT_TRUE(grid.until([&] { return grid.laptop().wall() > world.at; }));
  world.host().lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::succeeded);
  const auto spans = grid.laptop().records()->host_spans(world.host().name());
  for (const registry::HostSpan& span : *spans) EXPECT_EQ(span.cause, "") << "that was no failure";
}

TEST(Ends, WithoutAnotherHostItWaitsWithAllThatIsSavedAndGoesOnWhenTheHostStays) {
  Options o = quiet_options();
  o.hosts = 1;
  Ending world(o);
  Grid& grid = world.grid;
  ASSERT_TRUE(grid.until([&] { return grid.job("long").reason == "waiting_for_provider"; }));
  EXPECT_LT(grid.laptop().wall(), world.at);
  EXPECT_GT(grid.job("long").machine.head.value, 2u);
  EXPECT_NE(grid.job("long").machine.reason_text.find("1 ends"), std::string::npos) << grid.job("long").machine.reason_text;
  grid.laptop().user_ends(world.here, std::nullopt);
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::succeeded);
}

TEST(Ends, AnEndThatIsPutOffLetsTheJobStay) {
  Ending world(quiet_options());
  Grid& grid = world.grid;
  grid.laptop().user_ends(world.here, WallTime{world.at.ms + 60 * 60'000});
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.laptop().records()->attempts({"long"})->size(), 1u);
  EXPECT_FALSE(grid.told("long", "move_requested"));
}

TEST(Twins, RunApartAndTheFirstResultIsTaken) {
  Grid grid(quiet_options());
  grid.add("pair", [](job::Spec& spec) { spec.twins = 2; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  EXPECT_NE(grid.host("pair"), grid.host("pairr2"));
  grid.world.hosts[grid.host("pair") == "host0" ? 0 : 1]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair") && grid.ended("pairr2"); }));
  EXPECT_EQ(grid.job("pair").state, job::JobState::succeeded);
  EXPECT_FALSE(grid.job("pair").machine.overtaken.empty());
  EXPECT_GT(grid.job("pair").machine.head.value, 0u);
}

// The host of the one that is done is free before its result is taken: whatever else is lost, nothing starts there.
TEST(Twins, AreNotStartedAgainOnceThereIsAResult) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Options o = quiet_options();
    o.seed = seed;
    Grid grid(o);
    grid.add("pair", [](job::Spec& spec) { spec.twins = 2; });
    ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
    grid.world.hosts[grid.host("pair") == "host0" ? 0 : 1]->lose_power();
    ASSERT_TRUE(grid.until([&] { return grid.ended("pair"); }));
    EXPECT_EQ(grid.job("pair").machine.attempts.value, 1u) << "seed " << seed;
  }
}

TEST(Twins, OfALeaderThatIsCancelledSaveBeforeTheyEnd) {
  Grid grid(quiet_options());
  grid.add("pair", [](job::Spec& spec) { spec.twins = 2; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("pair") && grid.runs("pairr2"); }));
  grid.laptop().user_cancels({"pair"}, false);
  ASSERT_TRUE(grid.until([&] { return grid.job("pairr2").machine.cancel.has_value(); }));
  EXPECT_EQ(grid.job("pairr2").machine.cancel, job::k_limit_grace);
  EXPECT_EQ(grid.job("pairr2").machine.limit, "leader_ended");
  ASSERT_TRUE(grid.until([&] { return grid.ended("pair") && grid.ended("pairr2"); }));
}

// A daemon that was restarted knows where its siblings are only when it could read all of them; and one of whose
// placement a commit was reported as failed may be on its host all the same.
TEST(Twins, StayApartWhenTheRegistryFails) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Options o = quiet_options();
    o.seed = seed;
    o.hosts = 3;
    o.gpus_per_host = 3;
    o.work = 4 * k_min;
    for (int i = 0; i < 12; ++i) {
      o.faults.push_back({FaultKind::registry_error, i * 20 * k_s, 18 * k_s});
      o.faults.push_back({FaultKind::laptop_kill, i * 20 * k_s + 5 * k_s, k_s});
      o.faults.push_back({FaultKind::host_power, i * 30 * k_s, 2 * k_s, i % 3});
    }
    Grid grid(o);
    grid.add("trio", [](job::Spec& spec) { spec.twins = 3; });
    const auto ended = [&] { return grid.ended("trio") && grid.ended("trior2") && grid.ended("trior3"); };
    EXPECT_NO_THROW(EXPECT_TRUE(grid.until(ended)) << "seed " << seed) << "seed " << seed;
  }
}

TEST(Mover, LeavesAHostThatIsToBeEmptiedWhenTheNextCheckpointIsSafe) {
  Grid grid(quiet_options());
  grid.add("guest");
  ASSERT_TRUE(grid.until([&] { return grid.runs("guest"); }));
  const std::string before = grid.host("guest");
  grid.laptop().user_drains(before == "host0" ? 0 : 1, true, std::chrono::minutes{5});
  ASSERT_TRUE(grid.until([&] { return grid.runs("guest") && grid.host("guest") != before; }));
  EXPECT_EQ(grid.job("guest").machine.attempt()->resumed_from.value, 1u);
}

TEST(Prices, AJobFollowsAPriceAndLeavesForACheaperHost) {
  Options o = quiet_options();
  o.work = 60 * k_min;
  o.prices = {1, 2};
  Grid grid(o);
  grid.add("thrifty");
  ASSERT_TRUE(grid.until([&] { return grid.runs("thrifty"); }));
  EXPECT_EQ(grid.host("thrifty"), "host0");
  grid.laptop().user_prices(0, 30);
  ASSERT_TRUE(grid.until([&] { return grid.job("thrifty").machine.price_per_hour() == 30; }));
  ASSERT_TRUE(grid.until([&] { return grid.runs("thrifty") && grid.host("thrifty") == "host1"; }));
}

TEST(Prices, EachJobThatCostsIsLookedAtInTurn) {
  Options o = quiet_options();
  o.work = 60 * k_min;
  o.hosts = 6;
  o.prices = {10, 10, 10, 90, 90, 90};
  Grid grid(o);
  for (const char* name : {"a", "b", "c"}) grid.add(name);
  ASSERT_TRUE(grid.until([&] { return grid.runs("a") && grid.runs("b") && grid.runs("c"); }));
  for (int host = 3; host < 6; ++host) grid.laptop().user_prices(host, 1);
  ASSERT_TRUE(grid.until([&] {
    const auto is_on_a_cheap_host = [&](const char* name) {
      return grid.runs(name) && grid.job(name).machine.price_per_hour() == 1;
    };
    return is_on_a_cheap_host("a") && is_on_a_cheap_host("b") && is_on_a_cheap_host("c");
  }));
}

TEST(Preemption, AMoreUrgentJobGetsRoomWhenACheckpointIsSafe) {
  Options o = quiet_options();
  o.hosts = 1;
  Grid grid(o);
  grid.add("modest");
  ASSERT_TRUE(grid.until([&] { return grid.runs("modest"); }));
  grid.add("urgent", [](job::Spec& spec) { spec.priority = 5; });
  grid.laptop().user_submits();
  ASSERT_TRUE(grid.until([&] { return grid.runs("urgent"); }));
  EXPECT_TRUE(grid.told("urgent", "preempting"));
  EXPECT_GT(grid.job("modest").machine.head.value, 0u);
  ASSERT_TRUE(grid.until([&] { return grid.ended("urgent") && grid.ended("modest"); }));
  EXPECT_EQ(grid.job("modest").state, job::JobState::succeeded);
  EXPECT_LT(grid.job("modest").machine.lost, Duration{o.save_every}) << "it left just after a checkpoint";
}

TEST(Standby, KeepsTheNewestCheckpointWhereTheJobGoesNext) {
  Options o = quiet_options();
  o.hosts = 3;
  Grid grid(o);
  grid.add("warm", [](job::Spec& spec) { spec.checkpoint.standby = true; });
  ASSERT_TRUE(grid.until([&] { return grid.told("warm", "standby"); })) << grid.trace();
  const std::string before = grid.host("warm");
  grid.world.hosts[static_cast<std::size_t>(std::stoi(before.substr(4)))]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.runs("warm") && grid.host("warm") != before; }));
  EXPECT_NE(grid.job("warm").machine.attempt()->placement_reason.find("lies ready there"), std::string::npos);
}

// A gang's checkpoint has the sum of its members' numbers, which is no member's own.
TEST(Gangs, CheckpointsAreFetchedAfterARestartOfTheDaemonAsBefore) {
  Options o = quiet_options();
  o.hosts = 3;
  o.ganged = 1;
  o.work = 30 * k_min;
  Grid grid(o);
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 3; });
  ASSERT_TRUE(grid.until([&] { return grid.job("gang").machine.head.value == 4; }));
  grid.laptop().die(false);
  grid.laptop().begin();
  const Nanos restarted = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.job("gang").machine.head.value == 6; }));
  EXPECT_LT(grid.world.now - restarted, 3 * o.save_every);
  ASSERT_TRUE(grid.until([&] { return grid.ended("gang"); }));
  EXPECT_EQ(grid.job("gang").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("gang").machine.attempts.value, 1u);
}

// --- Gangs of any size -----------------------------------------------------------------------------------------------

Options gangs(int hosts) {
  Options o = quiet_options();
  o.hosts = hosts;
  o.ganged = 1;
  o.work = 40 * k_min;
  return o;
}

std::size_t size_of(Grid& grid, const std::string& name) {
  const registry::Job job = grid.job(name);
  return job.machine.attempt() == nullptr || job.state != job::JobState::running
             ? 0
             : job.machine.attempt()->members.size();
}

void range(job::Spec& spec, int least, int most) {
  spec.num_nodes = most;
  spec.gang.nodes_min = least;
}

TEST(Elastic, GoesOnWithFewerAtOnceAndGrowsBackJustAfterACheckpoint) {
  Grid grid(gangs(4));
  grid.add("gang", [](job::Spec& spec) { range(spec, 2, 4); });
  ASSERT_TRUE(grid.until([&] { return size_of(grid, "gang") == 4 && grid.job("gang").machine.head.value == 2; }));
  grid.world.hosts[1]->lose_power();
  const Nanos lost = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return size_of(grid, "gang") == 3; })) << grid.trace();
  EXPECT_LT(grid.world.now - lost, grid.world.options.lost_after + 20 * k_s);
  grid.world.hosts[1]->power_up();
  const std::uint64_t head = grid.job("gang").machine.head.value;
  ASSERT_TRUE(grid.until([&] { return size_of(grid, "gang") == 4; })) << grid.trace();
  EXPECT_GT(grid.job("gang").machine.head.value, head) << "it grows from a new checkpoint";
  EXPECT_TRUE(grid.told("gang", "moved_away"));
  EXPECT_TRUE(grid.job("gang").machine.failures.empty());
  ASSERT_TRUE(grid.until([&] { return grid.ended("gang"); }));
  EXPECT_EQ(grid.job("gang").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("gang").machine.attempts.value, 3u);
}

TEST(Elastic, BeginsWithWhatIsFreeAndMayBeLeftWithOneHost) {
  Grid grid(gangs(2));
  grid.add("gang", [](job::Spec& spec) { range(spec, 1, 3); });
  ASSERT_TRUE(grid.until([&] { return size_of(grid, "gang") == 2 && grid.job("gang").machine.head.value == 2; }));
  grid.world.hosts[0]->lose_power();
  ASSERT_TRUE(grid.until([&] { return size_of(grid, "gang") == 1; })) << grid.trace();
  const std::uint64_t head = grid.job("gang").machine.head.value;
  ASSERT_TRUE(grid.until([&] { return grid.job("gang").machine.head.value > head; }))
      << "one host's are whole by themselves";
  ASSERT_TRUE(grid.until([&] { return grid.ended("gang"); }));
  EXPECT_EQ(grid.job("gang").state, job::JobState::succeeded);
}

TEST(Spares, TakeThePlaceOfALostMemberAndTheOthersStay) {
  Grid grid(gangs(4));
  grid.add("gang", [](job::Spec& spec) {
    spec.num_nodes = 3;
    spec.gang.spares = 1;
  });
  ASSERT_TRUE(grid.until([&] { return grid.told("gang", "standby"); })) << grid.trace();
  std::vector<std::string> before, after;
  const registry::Job first = grid.job("gang");
  for (const job::Member& member : first.machine.attempt()->members) before.push_back(member.host.value);
  grid.world.hosts[static_cast<std::size_t>(std::stoi(before[1].substr(4)))]->lose_power();
  ASSERT_TRUE(grid.until([&] { return grid.job("gang").machine.attempts.value == 2 && grid.runs("gang"); }));
  const registry::Job job = grid.job("gang");
  for (const job::Member& member : job.machine.attempt()->members) after.push_back(member.host.value);
  EXPECT_NE(job.machine.attempt()->placement_reason.find("a spare takes the place"), std::string::npos);
  EXPECT_EQ(std::count(after.begin(), after.end(), before[1]), 0);
  EXPECT_EQ(std::count(after.begin(), after.end(), before[0]) + std::count(after.begin(), after.end(), before[2]), 2);
}

// A gang of three with a spare loses its first member just after its spare has got a checkpoint and a newer one was
// saved: why its second attempt goes where it goes.
std::string placed_after_a_loss(const Options& options) {
  Grid grid(options);
  grid.add("gang", [](job::Spec& spec) {
    spec.num_nodes = 3;
    spec.gang.spares = 1;
    spec.recovery.lost_after = std::chrono::seconds{5};
  });
  EXPECT_TRUE(grid.until([&] { return grid.told("gang", "standby"); })) << grid.trace();
  const std::uint64_t head = grid.job("gang").machine.head.value;
  EXPECT_TRUE(grid.until([&] { return grid.job("gang").machine.head.value > head; }));
  const std::string lost = grid.job("gang").machine.attempt()->members[0].host.value;
  grid.world.hosts[static_cast<std::size_t>(std::stoi(lost.substr(4)))]->lose_power();
  EXPECT_TRUE(grid.until([&] { return grid.job("gang").machine.attempts.value == 2 && grid.runs("gang"); }));
  return grid.job("gang").machine.attempt()->placement_reason;
}

// Also what is saved long after the spare was looked at, and while the lost host is silent and not given up yet.
TEST(Spares, HaveTheCheckpointThatWasSavedJustBeforeTheLoss) {
  for (Nanos later{}; later < 5 * k_s; later += k_s) {
    Options o = gangs(4);
    o.save_every += later;
    EXPECT_THAT(placed_after_a_loss(o), ::testing::HasSubstr("its newest checkpoint lies ready")) << later / k_s;
  }
}

// What it has is more than what another host has.
TEST(Spares, TakeThePlaceAlsoWithAnEarlierCheckpoint) {
  Options o = gangs(4);
  o.transfer_time = 50 * k_s;
  EXPECT_THAT(placed_after_a_loss(o), ::testing::HasSubstr("an earlier checkpoint lies ready"));
}

// Small jobs end one by one, and the next of them fits at once where the gang needs all hosts.
TEST(Turns, AGangIsNotPassedOverForEver) {
  Options o = gangs(3);
  o.work = 4 * k_min;
  Grid grid(o);
  const auto alone = [](job::Spec& spec) { spec.num_nodes = 1; };
  for (int i = 0; i < 3; ++i) grid.add("first" + std::to_string(i), alone);
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 3; });
  for (int i = 0; i < 30; ++i) grid.add("small" + std::to_string(i), alone);
  ASSERT_TRUE(grid.until([&] { return grid.job("gang").machine.reason == "waiting_for_provider"; })) << grid.trace();
  const Nanos waits = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); })) << grid.trace();
  EXPECT_LT(grid.world.now - waits, 6 * k_min) << grid.trace();
  EXPECT_TRUE(grid.told("gang", "kept_for_it"));
  EXPECT_FALSE(grid.ended("small29"));
}

TEST(Turns, AGangOfHigherPriorityGetsRoomFromLesserJobs) {
  Options o = gangs(3);
  Grid grid(o);
  for (int i = 0; i < 3; ++i) grid.add("lesser" + std::to_string(i), [](job::Spec& spec) { spec.num_nodes = 1; });
  ASSERT_TRUE(grid.until([&] { return grid.runs("lesser0") && grid.runs("lesser1") && grid.runs("lesser2"); }));
  grid.add("gang", [](job::Spec& spec) {
    spec.num_nodes = 2;
    spec.priority = 1;
  });
  grid.laptop().user_submits();
  const Nanos waits = grid.world.now;
  ASSERT_TRUE(grid.until([&] { return grid.runs("gang"); })) << grid.trace();
  EXPECT_LT(grid.world.now - waits, 4 * k_min);
  const auto stays = [&](const char* name) { return grid.runs(name) ? 1 : 0; };
  EXPECT_EQ(stays("lesser0") + stays("lesser1") + stays("lesser2"), 1) << "no more leave than have to";
}

TEST(Turns, WithoutThemItWouldBe) {
  static constexpr control::ConcernMaker k_none[] = {control::make_limits};
  Options o = gangs(3);
  o.work = 4 * k_min;
  Grid grid(o, k_none);
  const auto alone = [](job::Spec& spec) { spec.num_nodes = 1; };
  for (int i = 0; i < 3; ++i) grid.add("first" + std::to_string(i), alone);
  grid.add("gang", [](job::Spec& spec) { spec.num_nodes = 3; });
  for (int i = 0; i < 30; ++i) grid.add("small" + std::to_string(i), alone);
  ASSERT_TRUE(grid.until([&] { return grid.ended("small20") || grid.runs("gang"); }));
  EXPECT_FALSE(grid.runs("gang"));
}

// --- A concern of one's own ------------------------------------------------------------------------------------------

// Whatever it is good for: a job runs on one host for three minutes at most.
class Restless : public control::Concern {
 public:
  explicit Restless(const control::Controls& controls) : controls_(controls) {}
  [[nodiscard]] Duration period() const override { return std::chrono::seconds{5}; }
  void tick(BootTime) override {
    controls_.book.each([&](control::TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr || !running->attempt.started_at) return;
      if (controls_.world.clock.wall().ms - running->attempt.started_at->ms < 3 * k_min / k_ms) return;
      controls_.mover.ask(job, control::MoveWish{"restless", "it has been there for long"});
    });
  }
  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == "restless"; }
  [[nodiscard]] std::optional<control::MoveWish> still_wished(const control::TrackedJob&) override {
    return control::MoveWish{"restless"};
  }

 private:
  const control::Controls controls_;
};

TEST(Concern, ANewOneIsAFileAndARow) {
  std::vector<control::ConcernMaker> table(std::begin(control::k_concerns), std::end(control::k_concerns));
  table.push_back([](const control::Controls& controls) -> std::unique_ptr<control::Concern> {
    return std::make_unique<Restless>(controls);
  });
  Grid grid(quiet_options(), table);
  grid.add("nomad");
  ASSERT_TRUE(grid.until([&] { return grid.ended("nomad"); }));
  EXPECT_EQ(grid.job("nomad").state, job::JobState::succeeded);
  EXPECT_GE(grid.job("nomad").machine.attempts.value, 3u);
}

// Holds each job for five minutes.
class Quiet : public control::Concern {
 public:
  explicit Quiet(const control::Controls& controls)
      : controls_(controls), until_{controls.world.clock.wall().ms + 5 * 60'000} {}
  [[nodiscard]] std::optional<control::Held> holds(const control::TrackedJob&) const override {
    if (controls_.world.clock.wall() >= until_) return std::nullopt;
    return control::Held{"these are quiet hours", until_};
  }

 private:
  const control::Controls controls_;
  const WallTime until_;
};

TEST(Concern, ThatHoldsAJobIsItsReasonUntilItEnds) {
  std::vector<control::ConcernMaker> table(std::begin(control::k_concerns), std::end(control::k_concerns));
  table.push_back([](const control::Controls& controls) -> std::unique_ptr<control::Concern> {
    return std::make_unique<Quiet>(controls);
  });
  Grid grid(quiet_options(), table);
  grid.add("held");
  ASSERT_TRUE(grid.until([&] { return grid.job("held").reason == "held"; }));
  EXPECT_THAT(grid.job("held").machine.reason_text, ::testing::HasSubstr("these are quiet hours; until "));
  EXPECT_EQ(grid.job("held").machine.attempts.value, 0u);
  ASSERT_TRUE(grid.until([&] { return grid.ended("held"); }));
  EXPECT_EQ(grid.job("held").state, job::JobState::succeeded);
}

// A GPU that is gone: told by a host's health, which these hosts do not have. The concern is asked itself.
class LosesGpu : public control::Concern {
 public:
  explicit LosesGpu(const control::Controls& controls) : controls_(controls), gpus_(control::make_gpus(controls)) {}
  void tick(BootTime) override {
    const control::TrackedJob* job = controls_.book.find({"blind"});
    if (done_ || job == nullptr || job->in<job::Running>() == nullptr || job->state().head.value == 0) return;
    done_ = true;
    const job::Member& member = job->state().attempt()->lead();
    const control::FleetHost& host = *controls_.fleet.find(member.host);
    gpus_->gpu_lost(host, "GPU-of-nobody", "it fell off the bus");
    EXPECT_TRUE(job->in<job::Running>() != nullptr);
    gpus_->gpu_lost(host, member.gpu_uuids.front(), "it fell off the bus");
    EXPECT_TRUE(job->in<job::Stopping>() != nullptr) << "at once, without waiting for a checkpoint";
  }

 private:
  const control::Controls controls_;
  std::unique_ptr<control::Concern> gpus_;
  bool done_ = false;
};

TEST(Gpus, AJobLeavesAGpuThatIsGoneAtOnce) {
  std::vector<control::ConcernMaker> table{[](const control::Controls& controls) -> std::unique_ptr<control::Concern> {
    return std::make_unique<LosesGpu>(controls);
  }};
  Grid grid(quiet_options(), table);
  grid.add("blind");
  ASSERT_TRUE(grid.until([&] { return grid.ended("blind"); }));
  EXPECT_EQ(grid.job("blind").state, job::JobState::succeeded);
  EXPECT_EQ(grid.job("blind").machine.attempts.value, 2u);
}

}  // namespace
}  // namespace gridctl::sim::concerns_test
