// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/reliability.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sched/standing/gamma.hpp"

namespace gridctl::sched::reliability_test {
namespace {
using ::testing::HasSubstr;

constexpr std::int64_t k_hour_ms = 3'600'000;
Watched up(double from_h, double to_h, bool failed) {
  return {{std::llround(from_h * k_hour_ms)}, {std::llround(to_h * k_hour_ms)}, failed};
}

TEST(Gamma, AgreesWithKnownValues) {
  EXPECT_NEAR(gamma_cdf(1, 1), 1 - std::exp(-1.0), 1e-12);
  EXPECT_NEAR(gamma_cdf(0.5, 1.920729410347062), 0.95, 1e-9);  // half of chi-square's 3.8415 with 1 degree of freedom
  EXPECT_NEAR(gamma_quantile(5, 0.05), 3.940299136119 / 2, 1e-8);  // chi-square, 10 degrees
  EXPECT_NEAR(gamma_quantile(5, 0.95), 18.307038053275 / 2, 1e-8);
  for (const double shape : {0.1, 0.5, 1.0, 3.7, 40.0, 2500.0})
    for (const double p : {0.001, 0.05, 0.5, 0.95, 0.999})
      EXPECT_NEAR(gamma_cdf(shape, gamma_quantile(shape, p)), p, 1e-7) << shape << " " << p;
}

TEST(Reliability, IsThatOfTheClassBeforeAnythingWasSeen) {
  const Reliability home = estimate(class_rate_per_hour("home"), {}, {});
  EXPECT_NEAR(home.mtbf_hours(), 1 / 0.011, 1e-6);
  EXPECT_LT(home.mtbf_low_hours(), home.mtbf_hours() / 2);
  EXPECT_GT(home.mtbf_high_hours(), home.mtbf_hours() * 10);
  EXPECT_FALSE(home.seen_share);
  EXPECT_GT(estimate(class_rate_per_hour("datacenter"), {}, {}).mtbf_hours(), 6000);
  EXPECT_LT(estimate(class_rate_per_hour("market"), {}, {}).mtbf_hours(), 11);
}

TEST(Reliability, CountsHoursThatEndedWithoutAFailure) {
  // Salad: 100 hosts for a week, 182 interruptions; the mean of the interrupted runs is 35 h, which is wrong by 2.6.
  std::vector<Watched> seen;
  double t = 0;
  for (int i = 0; i < 182; ++i, t += 35) seen.push_back(up(t, t + 35, true));
  for (; t < 16800; t += 100) seen.push_back(up(t, std::min(t + 100, 16800.0), false));
  // All of it long ago, so that the recent memory says what the long one says.
  const Reliability all = estimate(0.011, seen, {static_cast<std::int64_t>(20000) * k_hour_ms});
  EXPECT_EQ(all.failures, 182);
  EXPECT_NEAR(all.hours, 16800, 1e-6);
  EXPECT_NEAR(all.mtbf_hours(), 91, 2);
}

TEST(Reliability, NarrowsItsBandWithEveryFailureSeen) {
  double before = 1e9;
  for (const int failures : {0, 1, 4, 16, 64}) {
    std::vector<Watched> seen;
    for (int i = 0; i < failures; ++i) seen.push_back(up(i * 10, i * 10 + 10, true));
    const Reliability r = estimate(0.1, seen, {failures * 10 * k_hour_ms});
    const double width = r.mtbf_high_hours() / r.mtbf_low_hours();  // never below that of a host that may change
    EXPECT_LT(width, before);
    EXPECT_LT(r.mtbf_low_hours(), r.mtbf_hours());
    EXPECT_GT(r.mtbf_high_hours(), r.mtbf_hours());
    before = width;
  }
}

TEST(Reliability, FollowsAHostThatBecameBetter) {
  std::vector<Watched> seen;
  for (int i = 0; i < 20; ++i) seen.push_back(up(i, i + 1, true));
  const double just_after = estimate(0.011, seen, {20 * k_hour_ms}).mtbf_hours();
  seen.push_back(up(20, 20 + 72, false));
  const double later = estimate(0.011, seen, {92 * k_hour_ms}).mtbf_hours();
  const double mean = (92 + 45) / 20.5;
  EXPECT_LT(just_after, 2 * 1.5);
  EXPECT_GT(later, mean * 1.3);  // three quiet days say more than the same hours a month ago
}

TEST(Reliability, KnowsDownTimeOnlyAfterFailures) {
  const Reliability r = estimate(0.011, {up(0, 30, true), up(40, 70, false), up(100, 130, false)}, {130 * k_hour_ms});
  ASSERT_TRUE(r.seen_share);
  EXPECT_NEAR(*r.seen_share, 90.0 / 100.0, 1e-9);  // 10 h down; from 70 to 100 nobody looked
  EXPECT_GT(r.up_share, 0.9);
}

TEST(Reliability, DoesNotDependOnTheOrderOfObservations) {
  std::vector<Watched> seen{up(0, 30, true), up(40, 70, true), up(71, 72, false)};
  const Reliability forward = estimate(0.011, seen, {80 * k_hour_ms});
  std::reverse(seen.begin(), seen.end());
  const Reliability backward = estimate(0.011, seen, {80 * k_hour_ms});
  EXPECT_NEAR(forward.rate_per_hour, backward.rate_per_hour, 1e-12);
  EXPECT_EQ(forward.seen_share, backward.seen_share);
}

TEST(Reliability, IsToldInHoursAndDays) {
  Reliability r;
  r.rate_per_hour = 1.0 / 100;
  r.low_per_hour = 1.0 / 5000;
  r.high_per_hour = 2;
  EXPECT_EQ(describe(r), "4d (30min-208d)");
}

TEST(Lemon, IsAHostFarWorseThanItsClass) {
  const std::vector<Watched> bad{up(0, 2, true), up(3, 5, true), up(6, 8, true), up(9, 11, true)};
  const Reliability lemon = estimate(0.011, bad, {11 * k_hour_ms});
  const double usual = median_rate({0.01, 0.02, lemon.rate_per_hour}, 0.011);
  EXPECT_THAT(lemon_reason(lemon, "home", usual), HasSubstr("4 failures in 8.0h"));
  EXPECT_THAT(lemon_reason(lemon, "home", usual), HasSubstr("as home hosts usually do"));
  EXPECT_EQ(lemon_reason(lemon, "home", lemon.rate_per_hour), "");  // where all are so, none is a lemon
  const Reliability unlucky = estimate(0.011, {up(0, 1, true), up(1, 2, true)}, {2 * k_hour_ms});
  EXPECT_EQ(lemon_reason(unlucky, "home", 0.011), "");
}

TEST(MedianRate, CountsTheClassAsOneMoreHost) {
  EXPECT_DOUBLE_EQ(median_rate({}, 0.1), 0.1);
  EXPECT_DOUBLE_EQ(median_rate({5}, 0.1), 0.1);
  EXPECT_DOUBLE_EQ(median_rate({0.2, 0.3}, 0.1), 0.2);
  EXPECT_DOUBLE_EQ(median_rate({0.01, 0.02, 0.03}, 9), 0.02);
}

TEST(NinetiethPercentile, IsOneOfTheValues) {
  using namespace std::chrono_literals;
  EXPECT_FALSE(ninetieth({}));
  EXPECT_EQ(ninetieth({3s}), Duration{3s});
  std::vector<Duration> ten;
  for (int i = 10; i >= 1; --i) ten.push_back(std::chrono::seconds{i});
  EXPECT_EQ(ninetieth(ten), Duration{9s});
}

// --- Published traces of spot instances ------------------------------------------------------------------------------

struct Trace {
  std::string name;
  double gap_h = 0;
  std::vector<int> hosts_up;  // by sample
};

Trace read_trace(const std::filesystem::path& path) {
  std::ifstream in(path);
  Trace trace{path.stem().string(), 0, {}};
  std::string line;
  std::getline(in, line);  // where it is from
  std::getline(in, line);
  trace.gap_h = std::stod(line.substr(line.find(',') + 1)) / 3600;
  std::getline(in, line);  // header
  while (std::getline(in, line)) {
    const std::size_t comma = line.find(',');
    trace.hosts_up.insert(trace.hosts_up.end(), std::stoul(line.substr(comma + 1)), std::stoi(line.substr(0, comma)));
  }
  return trace;
}

// Samples from..to as the daemon would have watched them: each host of the request its own, ended by its going away.
std::vector<Watched> watch(const Trace& trace, std::size_t from, std::size_t to) {
  std::vector<Watched> seen;
  std::vector<std::size_t> began;  // of the hosts that are up
  for (std::size_t i = from; i < to; ++i) {
    const auto hosts = static_cast<std::size_t>(trace.hosts_up[i]);
    const double now = static_cast<double>(i) * trace.gap_h;
    for (; began.size() > hosts; began.pop_back())
      seen.push_back(up(static_cast<double>(began.back()) * trace.gap_h, now, true));
    while (began.size() < hosts) began.push_back(i);
  }
  const double end = static_cast<double>(to) * trace.gap_h;
  for (const std::size_t at : began) seen.push_back(up(static_cast<double>(at) * trace.gap_h, end, false));
  return seen;
}

struct Outcome {
  std::string name;
  double predicted = 0, low = 0, high = 0, real = 0;
  [[nodiscard]] double factor() const { return std::max(predicted / real, real / predicted); }
};

// Hours up per failure of the second half, and what was expected of it after the first. Traces whose second half has
// fewer than three failures have no MTBF to compare with.
std::vector<Outcome> predict_second_halves(const std::filesystem::path& folder) {
  std::vector<Outcome> outcomes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    const Trace trace = read_trace(entry.path());
    const std::size_t middle = trace.hosts_up.size() / 2;
    double hours = 0, failures = 0;
    for (const Watched& w : watch(trace, middle, trace.hosts_up.size())) {
      hours += static_cast<double>(w.ended_at.ms - w.began_at.ms) / k_hour_ms;
      failures += w.failed ? 1 : 0;
    }
    if (failures < 3) continue;
    const WallTime now{std::llround(static_cast<double>(middle) * trace.gap_h * k_hour_ms)};
    const Reliability r = estimate(class_rate_per_hour("market"), watch(trace, 0, middle), now);
    outcomes.push_back({trace.name, r.mtbf_hours(), r.mtbf_low_hours(), r.mtbf_high_hours(), hours / failures});
  }
  std::sort(outcomes.begin(), outcomes.end(), [](const Outcome& a, const Outcome& b) { return a.name < b.name; });
  return outcomes;
}

double print_and_take_median(const std::vector<Outcome>& outcomes) {
  std::vector<double> factors;
  std::size_t within = 0;
  for (const Outcome& o : outcomes) {
    std::printf("%-62s predicted %6.2f h (%5.2f-%6.2f)  real %6.2f h  factor %.2f\n", o.name.c_str(), o.predicted,
                o.low, o.high, o.real, o.factor());
    factors.push_back(o.factor());
    within += o.real >= o.low && o.real <= o.high ? 1 : 0;
  }
  std::sort(factors.begin(), factors.end());
  const std::size_t n = factors.size();
  const double median = n % 2 == 1 ? factors[n / 2] : (factors[n / 2 - 1] + factors[n / 2]) / 2;
  std::printf("median factor of %zu traces: %.2f, worst %.2f; within the band: %zu\n", n, median, factors.back(),
              within);
  return median;
}

const std::filesystem::path k_traces = std::filesystem::path(GRIDCTL_SOURCE_DIR) / "tests/data/spot";

TEST(SpotTraces, FirstHalvesPredictTheSecondWithinAFactorOf1Point6) {
  const std::vector<Outcome> outcomes = predict_second_halves(k_traces);
  ASSERT_EQ(outcomes.size(), 6u);
  EXPECT_LE(print_and_take_median(outcomes), 1.6);
}

// Those by which the memory's half-life was chosen.
TEST(SpotTraces, FirstHalvesOfTheOthersPredictAsWell) {
  const std::vector<Outcome> outcomes = predict_second_halves(k_traces / "others");
  ASSERT_EQ(outcomes.size(), 23u);
  EXPECT_LE(print_and_take_median(outcomes), 1.6);
}

}  // namespace
}  // namespace gridctl::sched::reliability_test
