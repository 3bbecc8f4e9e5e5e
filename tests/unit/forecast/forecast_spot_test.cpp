// SPDX-License-Identifier: Apache-2.0
// The interval that gridctl chooses, on hosts that come and go as spot instances did, against the best fixed interval
// in hindsight. The failure rate is learned meanwhile, as the supervisor learns it, and the cost of a checkpoint is
// known only when one was taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "forecast/forecast.hpp"
#include "grid.hpp"
#include "traces.hpp"

namespace gridctl::forecast::forecast_spot_test {
namespace {

constexpr double k_hour = 3600;
constexpr std::uint64_t k_runs = 20;  // each begins at another point of the trace

struct Costs {
  const char* name;
  double stall, upload, restore;
};
constexpr Costs k_costs[] = {
    {"1 GB, 300 Mbit/s", 5, 27, 27}, {"14 GB, 1 Gbit/s", 30, 112, 112}, {"slow", 120, 300, 300}};

Grid grid_of(const Trace& trace, const Costs& costs, double work) {
  Grid grid;
  for (int i = 0; i < trace.hosts_max; ++i) {
    HostModel host = host_for(a_job(0), "spot-" + std::to_string(i), "market");
    host.facts.price_per_hour = 1;
    host.recorded = up_times(trace, i, trace.hosts_max);
    host.start = 60;
    host.upload = costs.upload;
    host.restore = costs.restore;
    grid.hosts.push_back(std::move(host));
  }
  grid.work = work;
  grid.stall = costs.stall;
  grid.horizon = 3650 * 24 * k_hour;
  return grid;
}

Figures figures_of(const Grid& grid, const job::Spec& spec) {
  Settings settings;
  settings.runs = k_runs;
  return *expect(grid, {"", spec}, settings);
}

job::Spec tuned() {
  job::Spec spec = a_job(1);
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::automatic;
  return spec;
}

struct Regret {
  double time = 0, paid = 0;  // relative to the best fixed interval, by the clock and by what is paid for
};

// Of completion, most is waiting for an instance where there is seldom one; the hours paid for tell the interval alone.
Regret regret_of(const Trace& trace, const Costs& costs, double work) {
  const Grid grid = grid_of(trace, costs, work);
  const Figures ours = figures_of(grid, tuned());
  double best_time = 1e18, best_paid = 1e18, best_interval = 0;
  for (double interval = 30; interval <= 4 * k_hour * 1.01; interval *= std::pow(480, 1.0 / 12)) {
    const Figures fixed = figures_of(grid, a_job(interval));
    if (!fixed.all_finished()) continue;
    if (fixed.time.mean < best_time) best_interval = interval;
    best_time = std::min(best_time, fixed.time.mean);
    best_paid = std::min(best_paid, fixed.cost.mean);
  }
  EXPECT_TRUE(ours.all_finished()) << trace.name;
  const Regret regret{ours.time.mean / best_time - 1, ours.cost.mean / best_paid - 1};
  std::printf(
      "%-58s %-17s tuned %7.1f h (%6.1f h paid)  best fixed %6.0f s: %7.1f h (%6.1f h)  regret %+5.1f %% (%+5.1f %%)\n",
      trace.name.c_str(), costs.name, ours.time.mean / k_hour, ours.cost.mean, best_interval, best_time / k_hour,
      best_paid, 100 * regret.time, 100 * regret.paid);
  return regret;
}

void expect_small_regret(const std::filesystem::path& folder, std::size_t count) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  ASSERT_EQ(paths.size(), count);
  double worst = 0, sum = 0;
  for (const std::filesystem::path& path : paths) {
    const Trace trace = read_trace(path);
    for (const Costs& costs : k_costs) {
      const Regret regret = regret_of(trace, costs, 48 * k_hour);
      EXPECT_LE(regret.time, 0.10) << trace.name << ", " << costs.name;
      EXPECT_LE(regret.paid, 0.10) << trace.name << ", " << costs.name;
      worst = std::max({worst, regret.time, regret.paid});
      sum += regret.time;
    }
  }
  std::printf("mean regret %.1f %%, worst %.1f %%\n",
              100 * sum / static_cast<double>(paths.size() * std::size(k_costs)), 100 * worst);
}

TEST(SpotTraces, TheTunedIntervalIsWithinTenPercentOfTheBestFixedOne) { expect_small_regret(k_traces, 6); }

}  // namespace
}  // namespace gridctl::forecast::forecast_spot_test
