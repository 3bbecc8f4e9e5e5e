// SPDX-License-Identifier: Apache-2.0
#include "forecast/forecast.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::forecast {

namespace {
void add(Figures& sum, const Outcome& one) {
  sum.start += one.start;
  sum.work += one.work;
  sum.stalled += one.stalled;
  sum.lost += one.lost;
  sum.recovery += one.recovery;
  sum.collecting += one.collecting;
  sum.failures += one.failures;
  sum.attempts += one.attempts;
  sum.moves += one.moves;
}

void divide(Figures& sum) {
  const auto count = static_cast<double>(std::max<std::uint64_t>(sum.finished, 1));
  for (double* one : {&sum.start, &sum.work, &sum.stalled, &sum.lost, &sum.recovery, &sum.collecting, &sum.failures,
                      &sum.attempts, &sum.moves})
    *one /= count;
}
}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  const auto ranked = [&](std::size_t percent) {
    return values[std::max<std::size_t>((values.size() * percent + 99) / 100, 1) - 1];
  };
  return {sum / static_cast<double>(values.size()), ranked(5), ranked(95)};
}

std::optional<Figures> expect(const Grid& grid, const Choice& choice, const Settings& settings) {
  Scheduler scheduler(grid, choice);
  Figures figures;
  std::vector<double> times, costs;
  std::uint64_t in_time = 0, in_budget = 0;
  for (std::uint64_t run = 0; run < settings.runs; ++run) {
    if (settings.go_on && !settings.go_on()) return std::nullopt;
    if (run == k_hopeless && figures.finished == 0) break;
    ++figures.runs;
    const Outcome one = live(scheduler, settings.seed, run, settings.go_on);
    if (!one.finished) continue;
    ++figures.finished;
    add(figures, one);
    times.push_back(one.time);
    costs.push_back(one.cost);
    in_time += settings.deadline && one.time <= *settings.deadline ? 1 : 0;
    in_budget += settings.budget && one.cost <= *settings.budget ? 1 : 0;
  }
  if (settings.go_on && !settings.go_on()) return std::nullopt;
  divide(figures);
  figures.time = spread_of(std::move(times));
  figures.cost = spread_of(std::move(costs));
  const auto share = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(figures.runs, 1));
  };
  if (settings.deadline) figures.in_time = share(in_time);
  if (settings.budget) figures.in_budget = share(in_budget);
  return figures;
}

namespace {
double surety(const Figures& one) {
  return one.runs == 0 ? 0 : static_cast<double>(one.finished) / static_cast<double>(one.runs);
}
}  // namespace

bool faster(const Figures& a, const Figures& b) {
  if (surety(a) != surety(b)) return surety(a) > surety(b);
  return a.time.mean < b.time.mean;
}

bool cheaper(const Figures& a, const Figures& b) {
  if (surety(a) != surety(b)) return surety(a) > surety(b);
  return a.cost.mean != b.cost.mean ? a.cost.mean < b.cost.mean : a.time.mean < b.time.mean;
}

Duration round_for_people(Duration length) {
  const auto s = static_cast<std::int64_t>(std::llround(gridctl::seconds(length)));
  if (s < 60) return std::chrono::seconds{std::max<std::int64_t>(s, 1)};
  if (s < 600) return std::chrono::seconds{(s + 15) / 30 * 30};
  if (s < 7200) return std::chrono::minutes{(s + 30) / 60};
  return std::chrono::minutes{(s + 300) / 600 * 10};
}

std::vector<Duration> around(Duration tuned) {
  std::vector<Duration> all;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    const auto scaled = std::chrono::duration_cast<Duration>(tuned * factor);
    const Duration one = round_for_people(std::max<Duration>(scaled, std::chrono::seconds{1}));
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  return all;
}

}  // namespace gridctl::forecast
