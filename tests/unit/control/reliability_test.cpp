// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/reliability.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/fleet/health.hpp"
#include "control/follow/tuning.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::reliability_test {
namespace {
using namespace std::chrono_literals;
using ::gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HandClock final : public os::Clock {
 public:
  [[nodiscard]] BootTime boot() const override { return {elapsed_.count()}; }
  [[nodiscard]] WallTime wall() const override { return {1'000'000'000'000 + elapsed_ / 1ms}; }
  void pass(Duration time) { elapsed_ += time; }

 private:
  Duration elapsed_ = 1h;
};

registry::Provider a_host(const std::string& name) {
  registry::Provider provider;
  provider.name = {name};
  provider.host_class = "home";
  return provider;
}

class Reliability : public ::testing::Test {
 protected:
  Reliability() : registry(*registry::Registry::open(dir.path())) {
    for (const char* name : {"ada", "bob"}) EXPECT_THAT(registry.add_provider(a_host(name)), IsOk());
    log.emplace(registry, clock);
  }
  // It answers for so long.
  void up(const std::string& name, Duration time, const std::string& boot = "boot-1", Duration heartbeat = 10s) {
    for (Duration passed{}; passed <= time; passed += heartbeat) {
      log->answered(a_host(name), boot);
      clock.pass(heartbeat);
      log->tick(clock.boot());
    }
  }
  std::vector<std::string> spans(const std::string& name) {
    std::vector<std::string> out;
    const auto all = registry.host_spans({name});
    for (const registry::HostSpan& span : *all)
      out.push_back(format_duration(std::chrono::milliseconds{span.ended_at.ms - span.began_at.ms}) + " " + span.cause);
    return out;
  }
  std::vector<std::string> events(const std::string& name) {
    std::vector<std::string> out;
    const auto all = registry.host_events({name}, 0);
    for (const registry::HostEvent& event : *all) out.push_back(event.kind);
    return out;
  }
  double figure(const std::string& name, const std::string& what) {
    const registry::Provider provider = *registry.provider({name});
    return provider.figures.contains(what) ? provider.figures.at(what) : -1;
  }
  std::string shunned(const std::string& name) {
    sched::HostFacts facts;
    facts.name = {name};
    log->apply(facts);
    return facts.shunned;
  }

  gridctl::testing::TempDir dir;
  HandClock clock;
  registry::Registry registry;
  std::optional<ReliabilityLog> log;
};

TEST_F(Reliability, WatchesAHostFromItsFirstAnswerUntilItIsLost) {
  up("ada", 1h);
  log->lost(a_host("ada"), 60s);
  EXPECT_THAT(spans("ada"), ElementsAre("1h host_lost"));
  clock.pass(2h);
  up("ada", 10min);
  log.reset();  // the daemon ends: nothing failed
  EXPECT_THAT(spans("ada"), ElementsAre("1h host_lost", "10m "));
  EXPECT_THAT(events("ada"), ElementsAre("lost", "returned"));
}

TEST_F(Reliability, TakesAnotherBootIdForAFailure) {
  up("ada", 1h);
  clock.pass(30min);  // nobody knows whether it was up
  up("ada", 1h, "boot-2");
  log.reset();
  EXPECT_THAT(spans("ada"), ElementsAre("1h rebooted", "1h "));
  EXPECT_THAT(events("ada"), Contains("rebooted"));
}

TEST_F(Reliability, CountsASilenceThatWasNotTheHostsAsUp) {
  up("ada", 1h);
  clock.pass(3h);  // our own network: it was never given up, and has the same boot id
  up("ada", 1h);
  log.reset();
  EXPECT_THAT(spans("ada"), ElementsAre("5h "));
}

TEST_F(Reliability, BlamesNobodyForADrainedHost) {
  up("ada", 1h);
  registry::Provider drained = a_host("ada");
  drained.drained = true;
  log->answered(drained, "boot-2");
  log->lost(drained, 60s);
  EXPECT_THAT(spans("ada"), ElementsAre("1h ", "0ms "));
}

TEST_F(Reliability, BlamesNobodyForAHostWhoseTimeIsOver) {
  const WallTime ends{clock.wall().ms + 3'600'000};
  const auto watched = [&](Duration time, const std::string& boot = "boot-1") {
    for (Duration passed{}; passed < time; passed += 10s, clock.pass(10s)) log->answered(a_host("ada"), boot, ends);
  };
  watched(30min);
  clock.pass(10min);
  watched(0s);
  log->lost(a_host("ada"), 60s);
  EXPECT_THAT(events("ada"), ElementsAre("lost")) << "half an hour too early";
  watched(19min + 30s);
  log->lost(a_host("ada"), 60s);
  EXPECT_THAT(events("ada"), ElementsAre("lost", "returned", "ended"));
  clock.pass(10min);
  watched(1min);
  watched(1min, "boot-2");
  log->lost(a_host("ada"), 60s);
  EXPECT_THAT(spans("ada"), ElementsAre("29m50s host_lost", "19m20s ", "50s ", "50s "));
  job::Step step;
  step.state.id = {"j"};
  job::AttemptRow row;
  row.state = "failed";
  row.attempt.members = {{0, {"ada"}, {}, {}, 1, 0, 0}};
  row.attempt.members[0].end = job::End{};
  row.attempt.members[0].end->kind = job::EndKind::vanished;
  step.attempts = {row};
  log->on_step({}, step);
  EXPECT_THAT(spans("ada"), ::testing::SizeIs(4)) << "what ran there then was to end";
}

TEST_F(Reliability, GoesOnWhereAFormerDaemonStopped) {
  for (int i = 0; i < 2; ++i) {
    up("ada", 10h, "boot-1", 10min);
    log->lost(a_host("ada"), 60s);
  }
  log.emplace(registry, clock);
  up("ada", 2min);
  EXPECT_EQ(figure("ada", "failures"), 2);
  EXPECT_NEAR(figure("ada", "watched"), 20, 0.2);
  EXPECT_LT(figure("ada", "mtbf_low"), figure("ada", "mtbf"));
  EXPECT_GT(figure("ada", "mtbf_high"), figure("ada", "mtbf"));
  EXPECT_GT(figure("ada", "reliability"), 0.9);
}

TEST_F(Reliability, LosesAtMostMinutesWhenTheDaemonIsKilled) {
  up("ada", 1h);
  const std::vector<std::string> saved = spans("ada");  // without a proper end
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_GE(*parse_duration(saved[0].substr(0, saved[0].find(' '))), 54min);
}

TEST_F(Reliability, ShunsAHostThatFailsMuchMoreOftenThanOthers) {
  up("bob", 30h, "boot-1", 1h);
  for (int i = 0; i < 4; ++i) {
    up("ada", 30min, "boot-1", 1min);
    log->lost(a_host("ada"), 60s);
  }
  up("ada", 2min);
  EXPECT_THAT(shunned("ada"), HasSubstr("as home hosts usually do: 4 failures in 2.0h"));
  EXPECT_EQ(shunned("bob"), "");
  EXPECT_THAT(events("ada"), Contains("avoided"));
  up("ada", 400h, "boot-1", 10h);
  EXPECT_EQ(shunned("ada"), "");
  EXPECT_THAT(events("ada"), Contains("trusted"));
}

// A job's steps, as the state machine makes them.
class Story {
 public:
  Story(registry::Registry& registry, ReliabilityLog& log, HandClock& clock)
      : registry_(registry), log_(log), clock_(clock) {
    job::Spec spec;
    spec.name = "train";
    spec.run = "true";
    EXPECT_THAT(registry_.submit(id_, spec, clock_.wall()), IsOk());
  }
  Story& then(job::Event what) {
    const job::State before = registry_.job(id_)->machine;
    const Result<job::Step> step = registry_.apply(id_, {clock_.wall(), std::move(what)});
    EXPECT_TRUE(step);
    log_.on_step(before, *step);
    return *this;
  }
  Story& placed(const std::string& host) {
    ++epoch_.value;
    return then(job::Placed{{job::Member{0, {host}, EngineKind::process, {}, 1, 0, 0}}, ""});
  }
  Story& started(Duration after = 3s) {
    clock_.pass(after);
    return then(job::PayloadStarted{epoch_});
  }
  Story& ended(job::End end) {
    return then(job::AttemptEnded{epoch_, std::move(end)}).then(job::Collected{epoch_, ""});
  }

 private:
  JobId id_{"0123456789abc"};
  Epoch epoch_;
  registry::Registry& registry_;
  ReliabilityLog& log_;
  HandClock& clock_;
};

TEST_F(Reliability, BlamesTheHostOnWhichProcessesVanish) {
  Story(registry, *log, clock).placed("ada").started().ended({job::EndKind::vanished, -1, 0, ""});
  EXPECT_THAT(spans("ada"), ElementsAre("0ms vanished"));
  EXPECT_THAT(events("ada"), ElementsAre("broke_job"));
}

TEST_F(Reliability, BlamesAHostForAFailedStartOnlyWhenAnotherStartsTheJob) {
  Story story(registry, *log, clock);
  story.placed("ada").then(job::LaunchFailed{{1}, "no image", true, {}});
  EXPECT_THAT(spans("ada"), ElementsAre());
  story.placed("bob").started();
  EXPECT_THAT(spans("ada"), ElementsAre("0ms start_failed"));
  EXPECT_THAT(spans("bob"), ElementsAre());
}

TEST_F(Reliability, BlamesAHostForAFailedJobOnlyWhenAnotherFinishesIt) {
  Story story(registry, *log, clock);
  story.placed("ada").started().ended({job::EndKind::exited, 1, 0, ""});
  EXPECT_THAT(spans("ada"), ElementsAre());
  story.placed("bob").started().ended({job::EndKind::exited, 0, 0, ""});
  EXPECT_THAT(spans("ada"), ElementsAre("0ms job_failed"));
  EXPECT_THAT(spans("bob"), ElementsAre());
}

TEST_F(Reliability, KnowsHowLongStartsTake) {
  Story(registry, *log, clock).placed("ada").started(42s);
  up("ada", 2min);
  EXPECT_NEAR(figure("ada", "start_time"), 42, 0.1);
}

TEST_F(Reliability, AddsWhatItsGpusDo) {
  up("ada", 100h, "boot-1", 1h);
  const double alone = log->rate_per_hour({"ada"}, "home", {});
  const double with_good = log->rate_per_hour({"ada"}, "home", {"GPU-1"});
  ASSERT_THAT(record_changes(registry, {"ada"}, clock.wall(),
                             {{"GPU-2", "quarantined", "xid-79", "it has fallen off the bus"},
                              {"GPU-1", "noted", "xid-31", "a program's own fault"},
                              {"GPU-1", "quarantined", "leftover_process", "a job left it"},
                              {"GPU-1", "quarantined", "driver_hung", "of the host"}}),
              IsOk());
  log->gpus_judged({"ada"});
  const double with_bad = log->rate_per_hour({"ada"}, "home", {"GPU-2"});
  EXPECT_GT(with_good, alone);
  EXPECT_LT(with_good, alone * 1.01);
  EXPECT_GT(with_bad, with_good);
  const auto all = *registry.host_spans({"ada"});
  EXPECT_LT(reliability_of_gpu("GPU-2", all, clock.wall()).mtbf_hours(),
            reliability_of_gpu("GPU-1", all, clock.wall()).mtbf_hours());
  up("ada", 2min);
  EXPECT_EQ(figure("ada", "failures"), 0) << "they are not the host's";
}

TEST(MeasuredCost, TakesMediansAndLeavesStraysOut) {
  std::vector<registry::Checkpoint> checkpoints(4);
  for (std::size_t i = 0; i < 4; ++i) {
    checkpoints[i].stall = std::chrono::seconds{static_cast<int>(i)};
    checkpoints[i].upload = std::chrono::seconds{static_cast<int>(10 * i)};
  }
  checkpoints[3].stray = true;
  checkpoints.emplace_back();  // pushed by hand: it cost nothing
  registry::Provider host = a_host("ada");
  EXPECT_EQ(measured_cost(checkpoints, host, 60s).stall, 1s);
  EXPECT_EQ(measured_cost(checkpoints, host, 60s).upload, 10s);
  EXPECT_EQ(measured_cost(checkpoints, host, 60s).restart, 90s);
  host.figures["start_time"] = 5;
  EXPECT_EQ(measured_cost({}, host, 60s).restart, 65s);
  EXPECT_EQ(measured_cost({}, host, 60s).stall, 0s);
  checkpoints.resize(1);
  EXPECT_GT(measured_cost(checkpoints, host, 60s).stall, 0s);  // seen as nothing is not measured as nothing
}

}  // namespace
}  // namespace gridctl::control::reliability_test
