// SPDX-License-Identifier: Apache-2.0
#include "forecast/life.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "control/reach/pace.hpp"
#include "forecast/forecast.hpp"
#include "grid.hpp"
#include "job/failure_detector.hpp"

namespace gridctl::forecast::life_test {
namespace {
using namespace std::chrono_literals;

Grid a_grid(std::vector<HostModel> hosts, double work, double stall) {
  Grid grid;
  grid.hosts = std::move(hosts);
  grid.work = work;
  grid.stall = stall;
  grid.horizon = work * 50;
  return grid;
}
Outcome one_life(const Grid& grid, const job::Spec& spec, std::uint64_t number = 0) {
  const Choice choice{"", spec};
  Scheduler scheduler(grid, choice);
  return live(scheduler, 1, number);
}
// Four that are cheap and often gone, and one that is dear and always there.
Grid a_market(double work) {
  std::vector<HostModel> hosts;
  for (const char* name : {"spot-1", "spot-2", "spot-3", "spot-4"}) {
    hosts.push_back(a_host(name).failing(2 * 3600, 1800).starting(60));
    hosts.back().facts.price_per_hour = 1;
    hosts.back().facts.host_class = "market";
  }
  hosts.push_back(a_host("rock").starting(60));
  hosts.back().facts.price_per_hour = 4;
  return a_grid(std::move(hosts), work, 10);
}
TEST(Deadline, ItLeavesWhatMayFailAtTheLastMomentAndIsInTime) {
  const Grid grid = a_market(10 * 3600);
  Choice choice{"", a_job(1800)};
  choice.spec.deadline = job::Deadline{{}, 12h + 30min, false};
  Settings settings;
  settings.runs = 150;
  settings.deadline = 12.5 * 3600;
  const Figures ours = *expect(grid, choice, settings);
  EXPECT_GT(ours.moves, 0);
  EXPECT_GE(*ours.in_time, 0.99);
  choice.spec.constraints.providers = {"rock"};
  const Figures rock = *expect(grid, choice, settings);
  EXPECT_EQ(rock.moves, 0);
  EXPECT_LT(ours.cost.mean, 0.8 * rock.cost.mean);
  choice.spec.constraints.providers.clear();
  choice.spec.constraints.classes = {"market"};
  choice.spec.optimize = job::Optimize::time;  // never to what is cheaper
  const Figures spot = *expect(grid, choice, settings);
  EXPECT_LT(*spot.in_time, 0.9);
  EXPECT_EQ(spot.moves, 0) << "there is nowhere to go";
}
TEST(Cheaper, ItGoesBackToWhatIsCheapWhenThatIsThereAgain) {
  Settings settings;
  settings.runs = 300;
  Grid grid = a_market(10 * 3600);
  grid.hosts.erase(grid.hosts.begin() + 1, grid.hosts.begin() + 4);  // one of each kind
  Choice choice{"", a_job(900)};
  const Figures ours = *expect(grid, choice, settings);
  EXPECT_GT(ours.moves, 0.5);
  choice.spec.optimize = job::Optimize::time;
  const Figures hurried = *expect(grid, choice, settings);
  EXPECT_EQ(hurried.moves, 0);
  EXPECT_LT(ours.cost.mean, 0.7 * hurried.cost.mean);
  choice.spec.optimize = job::Optimize::cost;
  choice.spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  EXPECT_EQ(expect(grid, choice, settings)->moves, 0) << "what does not save loses all by a move";
}
TEST(ByPrice, TakesTheCheapestPerHourHoweverSlow) {
  Grid grid = a_grid({a_host("slow"), a_host("fast")}, 3600, 0);
  grid.hosts[0].facts.price_per_hour = 1;
  grid.hosts[0].speed = 0.1;
  grid.hosts[1].facts.price_per_hour = 2;
  Choice choice{"", a_job(0)};
  Settings settings;
  settings.runs = 1;
  EXPECT_NEAR(expect(grid, choice, settings)->cost.mean, 2, 0.1);
  choice.by_price = true;
  EXPECT_NEAR(expect(grid, choice, settings)->cost.mean, 10, 0.1);
}
TEST(Pacing, IsThatOfTheSupervisor) {
  const Pacing pacing;
  EXPECT_EQ(pacing.tick, control::k_tick);
  EXPECT_EQ(pacing.nap, control::k_nap);
  EXPECT_EQ(pacing.heartbeat, control::k_heartbeat_max);
  EXPECT_EQ(pacing.heartbeat_min, control::k_heartbeat_min);
  EXPECT_EQ(pacing.beats_to_lost, control::k_beats_to_lost);
  EXPECT_EQ(pacing.heartbeat_idle, control::k_heartbeat_idle);
  EXPECT_EQ(pacing.reconnect, control::k_reconnect_max);
  EXPECT_EQ(pacing.patience_beats, control::k_patience_beats);
}

TEST(Life, WithoutFailuresIsStartWorkAndCheckpoints) {
  const Grid grid = a_grid({a_host("ada").starting(30).set([](HostModel& h) {
                             h.upload = 7;
                             h.facts.price_per_hour = 3.6;
                           })},
                           1000, 5);
  const Outcome one = one_life(grid, a_job(100));
  ASSERT_TRUE(one.finished);
  EXPECT_NEAR(one.time, 30 + 1000 + 9 * 5 + 7, 0.01);
  EXPECT_EQ(one.failures, 0);
  EXPECT_EQ(one.attempts, 1);
  EXPECT_EQ(one.lost, 0);
  EXPECT_NEAR(one.collecting, 7, 0.01);
  EXPECT_NEAR(one.cost, (1000 + 45 + 7) * 0.001, 1e-5);  // not while it was started
}

TEST(Life, IsShorterOnAFasterHost) {
  const Grid grid = a_grid({a_host("ada").set([](HostModel& h) { h.speed = 4; })}, 1000, 0);
  EXPECT_NEAR(one_life(grid, a_job(0)).time, 250, 0.01);
}

TEST(Life, PartsAddUpToTheWholeTime) {
  std::vector<HostModel> hosts;
  for (int i = 0; i < 4; ++i)
    hosts.push_back(
        a_host("host-" + std::to_string(i)).failing(4000 + 1000 * i, 900).starting(40).set([&](HostModel& h) {
          h.upload = 25;
          h.restore = 12;
          h.speed = 0.5 + i;
        }));
  const Grid grid = a_grid(std::move(hosts), 200'000, 6);
  int failures = 0;
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Outcome one = one_life(grid, a_job(300), number);
    ASSERT_TRUE(one.finished);
    EXPECT_NEAR(one.start + one.work + one.stalled + one.lost + one.recovery + one.collecting, one.time, 1e-3);
    EXPECT_GE(one.lost, 0);
    failures += one.failures;
  }
  EXPECT_GT(failures, 500);
}

// The silence of a host is found out as the real supervisor finds it out: a tick every 200 ms, one poll a heartbeat.
TEST(Life, GivesASilentHostUpWhenHeartbeatsWould) {
  const Pacing pacing;
  for (const Duration lost_after : {20s, 60s, 600s}) {
    job::Spec spec = a_job(100);
    spec.recovery.lost_after = lost_after;
    // Taken first, for it costs nothing; soon gone, and for ever.
    Grid grid = a_grid(
        {a_host("ada").failing(60, 1e9), a_host("bo").set([](HostModel& h) { h.facts.price_per_hour = 9; })}, 2000, 0);
    double low = 1e9, high = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
      const Outcome one = one_life(grid, spec, number);
      ASSERT_TRUE(one.finished);
      ASSERT_EQ(one.failures, 1);
      low = std::min(low, one.recovery);
      high = std::max(high, one.recovery);
    }
    // By hand: silence begins with the poll that stays unanswered.
    const Duration heartbeat = std::clamp(lost_after / pacing.beats_to_lost, pacing.heartbeat_min, pacing.heartbeat);
    job::FailureDetector silence(pacing.nap);
    BootTime now{1};
    silence.answered(now);
    while (silence.judge(lost_after) != job::Liveness::lost) {
      now = now + pacing.tick;
      silence.tick(now, true);
    }
    const double counted = seconds(now - BootTime{1});
    EXPECT_GT(low, counted - 0.01);
    EXPECT_LT(low, counted + 1);
    EXPECT_LT(high, counted + seconds(heartbeat) + 1.01);
    EXPECT_GT(high, counted + seconds(heartbeat) * 0.8);
  }
}

TEST(Life, AloneItWaitsForItsHostToComeBack) {
  const Grid grid = a_grid({a_host("ada").failing(3000, 4000)}, 10'000, 0);
  double recovery = 0, failures = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Outcome one = one_life(grid, a_job(50), number);
    ASSERT_TRUE(one.finished);
    recovery += one.recovery;
    failures += one.failures;
  }
  EXPECT_NEAR(recovery / failures, 4000 + 2.5, 400);  // no silence counts when nobody else answers
}

TEST(Life, GoesBackToNothingWithoutCheckpoints) {
  const Grid grid = a_grid({a_host("ada").failing(2000, 0)}, 4000, 0);
  double time = 0;
  for (std::uint64_t number = 0; number < 800; ++number) time += one_life(grid, a_job(0), number).time;
  const double expected = 2000 * std::expm1(2.0);  // and the pauses between
  EXPECT_NEAR(time / 800 / expected, 1, 0.1);
}

TEST(Life, EndsAtTheHorizonWhenItCannotEnd) {
  const Grid grid = a_grid({a_host("ada").failing(600, 0)}, 9'000, 0);
  const Outcome one = one_life(grid, a_job(0));
  EXPECT_FALSE(one.finished);
  EXPECT_LE(one.time, grid.horizon);
  const auto figures = expect(grid, {"", a_job(0)}, {});
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->runs, k_hopeless);
  EXPECT_EQ(figures->finished, 0u);
}

TEST(Life, IsTheSameForTheSameSeed) {
  const Grid grid = a_grid({a_host("ada").failing(5000, 100), a_host("bo").failing(7000, 100)}, 50'000, 5);
  const Outcome a = one_life(grid, a_job(300), 3), b = one_life(grid, a_job(300), 3), c = one_life(grid, a_job(300), 4);
  EXPECT_EQ(a.time, b.time);
  EXPECT_EQ(a.lost, b.lost);
  EXPECT_NE(a.time, c.time);
}

// Hosts fail at the same times, however the job saves.
TEST(Life, MeetsTheSameFailuresWhateverTheChoice) {
  const Grid grid = a_grid({a_host("ada").failing(50'000, 0)}, 20'000, 0);
  int struck = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const bool often = one_life(grid, a_job(100), number).failures > 0;
    EXPECT_EQ(often, one_life(grid, a_job(1000), number).failures > 0);
    struck += often ? 1 : 0;
  }
  EXPECT_GT(struck, 15);
  EXPECT_LT(struck, 60);
}

TEST(Life, GoesToTheHostThatTheSchedulerChooses) {
  Grid grid = a_grid({a_host("ada").set([](HostModel& h) { h.facts.price_per_hour = 2; }),
                      a_host("bo").set([](HostModel& h) { h.facts.price_per_hour = 1; })},
                     3600, 0);
  EXPECT_NEAR(one_life(grid, a_job(0)).cost, 1, 1e-6);
  job::Spec pinned = a_job(0);
  pinned.constraints.providers = {"ada"};
  EXPECT_NEAR(one_life(grid, pinned).cost, 2, 1e-6);
}

// What the engine leaves out: of an attempt's checkpoints only the newest is committed.
TEST(StateMachine, IsTheSameAfterTheNewestOfSeveralCheckpoints) {
  const WallTime start{1'800'000'000'000};
  job::State state = job::submitted(JobId{"j"}, a_job(60), start).state;
  const auto then = [&](job::State from, std::int64_t at_ms, job::Event what) {
    return job::step(from, {{start.ms + at_ms}, std::move(what)}).state;
  };
  job::Member member;
  member.host = {"ada"};
  state = then(state, 0, job::Placed{{member}, "x"});
  state = then(state, 1, job::PayloadStarted{state.epoch});
  job::State each = state;
  for (std::uint64_t i = 1; i <= 5; ++i)
    each = then(each, static_cast<std::int64_t>(i) * 60'000, job::CheckpointCommitted{each.epoch, {i}, "", i});
  const job::State last = then(state, 300'000, job::CheckpointCommitted{state.epoch, {5}, "", 5});
  EXPECT_EQ(each, last);
  EXPECT_EQ(then(each, 310'000, job::HostLost{each.epoch, 60s}), then(last, 310'000, job::HostLost{last.epoch, 60s}));
}

TEST(Expectation, KeepsNineOfTenRunsInItsBand) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Spread spread = spread_of(values);
  EXPECT_DOUBLE_EQ(spread.mean, 50.5);
  EXPECT_EQ(spread.low, 5);
  EXPECT_EQ(spread.high, 95);
  EXPECT_EQ(spread_of({}).mean, 0);
  EXPECT_EQ(spread_of({3}).low, 3);
}

TEST(Expectation, TellsHowSurelyADeadlineIsMet) {
  const Grid grid = a_grid({a_host("ada").failing(10'000, 500)}, 10'000, 0);
  Settings settings;
  settings.runs = 400;
  settings.deadline = 10'001;  // only without any failure
  const auto figures = expect(grid, {"", a_job(100)}, settings);
  ASSERT_TRUE(figures && figures->in_time);
  EXPECT_NEAR(*figures->in_time, std::exp(-1.0), 0.08);
  settings.deadline = 1e9;
  EXPECT_EQ(expect(grid, {"", a_job(100)}, settings)->in_time, 1);
}

TEST(Expectation, StopsWhenItIsTold) {
  int asked = 0;
  Settings settings;
  settings.go_on = [&] { return ++asked < 5; };
  EXPECT_FALSE(expect(a_grid({a_host("ada")}, 100, 0), {"", a_job(0)}, settings));
  EXPECT_EQ(asked, 5);
}

TEST(Intervals, AroundOneAreLengthsThatPeopleSay) {
  EXPECT_EQ(round_for_people(754s), 13min);
  EXPECT_EQ(round_for_people(100s), 90s);
  EXPECT_EQ(round_for_people(42s), 42s);
  EXPECT_EQ(round_for_people(0s), 1s);
  EXPECT_EQ(around(20min), (std::vector<Duration>{5min, 10min, 20min, 40min, 80min}));
}

}  // namespace
}  // namespace gridctl::forecast::life_test
