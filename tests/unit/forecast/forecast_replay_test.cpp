// SPDX-License-Identifier: Apache-2.0
// What jobs cost on a market of spot and on-demand machines, replayed from six weeks of three zones: placed by gridctl,
// always on the cheapest per hour (which knows of no deadline), and on demand only.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "forecast/forecast.hpp"
#include "grid.hpp"
#include "traces.hpp"

namespace gridctl::forecast::forecast_replay_test {
namespace {

constexpr double k_hour = 3600;
constexpr std::uint64_t k_runs = 40;  // each begins at another point of the six weeks

// USD an hour as AWS listed them in 2023: p3.2xlarge (V100), g4dn.xlarge (T4), p2.xlarge (K80). The speeds are those of
// 16-bit matrices, of the K80 those of 32-bit ones.
constexpr double k_v100_spot = 0.918, k_v100 = 3.06, k_t4 = 0.526, k_k80_spot = 0.27;
constexpr double k_t4_speed = 0.4, k_k80_speed = 0.05;
constexpr double k_upload = 112, k_stall = 30;  // 14 GB over 1 Gbit/s

HostModel rented(std::string name, const char* host_class, double price, double speed) {
  HostModel host = host_for(a_job(0), std::move(name), host_class);
  host.facts.price_per_hour = price;
  host.speed = speed;
  host.start = 120;
  host.upload = host.restore = k_upload;
  return host;
}

Grid market(double work) {
  Grid grid;
  for (const char* zone : {"us-east-1a", "us-east-1c", "us-west-2a"}) {
    const Trace trace =
        read_trace(k_traces / ("availability_1-node_aws-02-15-2023_" + std::string(zone) + "_v100_1.csv"));
    HostModel host = rented("spot-" + std::string(zone), "market", k_v100_spot, 1);
    host.recorded = up_times(trace, 0, 1);  // all three at the same time
    grid.hosts.push_back(std::move(host));
  }
  grid.hosts.push_back(rented("v100", "cloud", k_v100, 1));
  grid.hosts.push_back(rented("t4", "cloud", k_t4, k_t4_speed));
  grid.hosts.push_back(rented("k80-spot", "market", k_k80_spot, k_k80_speed));
  grid.work = work;
  grid.stall = k_stall;
  grid.state_bytes = 14e9;
  grid.horizon = 3650 * 24 * k_hour;
  return grid;
}

struct Sum {
  double cost = 0, late = 0, runs = 0;
  void add(const Figures& of) {
    EXPECT_TRUE(of.all_finished());
    cost += of.cost.mean;
    runs += static_cast<double>(of.runs);
    late += (1 - of.in_time.value_or(1)) * static_cast<double>(of.runs);
  }
};

TEST(SpotReplay, CostsLessThanTheCheapestPerHourAndThanOnDemandAndMeetsDeadlines) {
  Sum ours, on_demand, by_price, unhurried, unhurried_by_price;
  for (const double hours : {6.0, 24.0, 72.0})
    for (const double slack : {0.0, 1.25, 1.5, 2.0}) {  // times the work; 0: no deadline
      const Grid grid = market(hours * k_hour);
      Choice choice{"", a_job(0)};
      choice.spec.checkpoint.interval = job::CheckpointPolicy::Interval::automatic;
      Settings settings;
      settings.runs = k_runs;
      if (slack > 0) {
        settings.deadline = slack * grid.work;
        choice.spec.deadline = job::Deadline{{}, std::chrono::seconds{std::llround(*settings.deadline)}, false};
      }
      const Figures placed = *expect(grid, choice, settings);
      choice.by_price = true;
      const Figures cheapest = *expect(grid, choice, settings);
      choice.by_price = false;
      choice.spec.constraints.classes = {"cloud"};
      const Figures steady = *expect(grid, choice, settings);
      std::printf(
          "%3.0f h of work, deadline %4.2f times: %7.2f USD (%5.1f h, %.2f moves, %5.1f %% in time), cheapest per hour "
          "%7.2f (%5.1f %%), on demand %7.2f (%5.1f %%)\n",
          hours, slack, placed.cost.mean, placed.time.mean / k_hour, placed.moves, 100 * placed.in_time.value_or(1),
          cheapest.cost.mean, 100 * cheapest.in_time.value_or(1), steady.cost.mean, 100 * steady.in_time.value_or(1));
      ours.add(placed);
      on_demand.add(steady);
      by_price.add(cheapest);
      if (slack > 0) continue;
      unhurried.add(placed);
      unhurried_by_price.add(cheapest);
    }
  std::printf("%.3f of the cheapest per hour, %.3f without a deadline; %.3f of on demand; %.2f %% in time\n",
              ours.cost / by_price.cost, unhurried.cost / unhurried_by_price.cost, ours.cost / on_demand.cost,
              100 * (1 - ours.late / ours.runs));
  EXPECT_LE(ours.cost, 0.85 * by_price.cost);
  EXPECT_LE(unhurried.cost, 0.85 * unhurried_by_price.cost);
  EXPECT_LE(ours.cost, 0.75 * on_demand.cost);
  EXPECT_LE(ours.late, 0.01 * ours.runs);
}

}  // namespace
}  // namespace gridctl::forecast::forecast_replay_test
