// SPDX-License-Identifier: Apache-2.0
// The simulated world against the closed form: a job whose host fails at exponential times is followed by the simulated
// daemon, agent and supervisor to its end. It takes the mean time that Daly's complete model predicts,
//   T = M e^(R/M) (e^((tau+C)/M) - 1) Ts/tau        (failures strike during checkpoints and restarts too).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "host.hpp"
#include "sched/interval.hpp"
#include "support/checkpoint_cases.hpp"
#include "truth.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim::closed_form_test {
namespace {

using Case = testing::CheckpointCase;

double closed_form(const Case& c) {
  return c.mtbf * std::exp(c.restart / c.mtbf) * std::expm1((c.interval + c.cost) / c.mtbf) * c.work / c.interval;
}

Nanos nanos(double seconds) { return static_cast<Nanos>(seconds * k_s); }

// Of a restart: seeing that the host has rebooted, collecting, placing, sending, and the engine's own time; and what is
// lost because a checkpoint is safe only when it has arrived (theory K13 adds it to R).
constexpr double k_overhead = 14.0;

constexpr double k_slices = 4;  // a run does so small a part of the work: where failures are rare, few runs tell

Options make_options(const Case& c, std::uint64_t seed) {
  Options o;
  o.seed = seed;
  o.hosts = 2;
  o.jobs = 1;
  o.tick = 2 * k_s;  // most of the time goes into heartbeats
  o.delay = 20 * k_ms;
  o.lost_after = 600 * k_s;
  o.lease = 3600 * k_s;
  o.transfer_time = 100 * k_ms;
  o.work = nanos(c.work / k_slices);
  o.save_every = nanos(c.interval);
  o.save_cost = nanos(c.cost);
  o.start_time = nanos(c.restart - k_overhead);
  o.start_spread = 0.01;
  o.mtbf = nanos(c.mtbf);
  o.patience = nanos(c.expected * 10);
  o.events_max = 1'000'000'000;
  return o;
}

struct Sample {
  int runs = 0;
  double sum = 0, squares = 0, outage = 0, upload = 0;
  [[nodiscard]] double mean() const { return sum / runs; }
  [[nodiscard]] double error() const {  // of the mean, relative
    const double variance = std::max(squares / runs - mean() * mean(), 0.0) / (runs - 1);
    return std::sqrt(variance) / mean();
  }
};

TEST(ClosedForm, IsWhatTheReferenceTableSays) {
  const std::vector<Case> cases = testing::checkpoint_cases();
  ASSERT_GE(cases.size(), 10u);
  for (const Case& c : cases) {
    EXPECT_NEAR(closed_form(c) / c.expected, 1, 1e-4) << c.name;
    EXPECT_NEAR(sched::optimal_interval(c.cost, c.mtbf) / c.interval, 1, 1e-4) << c.name;
  }
}

TEST(ClosedForm, IsMetByTheSimulatedWorldWithinTwoPercent) {
  constexpr int k_runs_min = 6, k_runs_max = 160;
  constexpr double k_error = 0.012;
  for (const Case& c : testing::checkpoint_cases()) {
    Sample sample;
    while (sample.runs < k_runs_min || (sample.error() > k_error && sample.runs < k_runs_max)) {
      World world(make_options(c, 1 + static_cast<std::uint64_t>(sample.runs)), false);
      ASSERT_NO_THROW(world.run()) << c.name;
      const double time = static_cast<double>(world.truth->finished_at()) / k_s * k_slices;
      ++sample.runs;
      sample.sum += time;
      sample.squares += time * time;
      sample.outage += world.truth->outage.value();
      sample.upload += world.truth->upload.value();
    }
    std::printf(
        "%s: M %.0f s, C %.0f s, R %.0f s, tau %.1f s: %.0f s +- %.2f %% in %d runs, expected %.0f s, %+.2f %%; "
        "a restart took %.1f s, an upload %.1f s\n",
        c.name.c_str(), c.mtbf, c.cost, c.restart, c.interval, sample.mean(), 100 * sample.error(), sample.runs,
        c.expected, 100 * (sample.mean() / c.expected - 1), sample.outage / sample.runs, sample.upload / sample.runs);
    // Of few runs the error itself is known roughly: four times that is chance, not a fault.
    EXPECT_NEAR(sample.mean() / c.expected, 1, std::max(0.02, 4 * sample.error())) << c.name;
  }
}

}  // namespace
}  // namespace gridctl::sim::closed_form_test
