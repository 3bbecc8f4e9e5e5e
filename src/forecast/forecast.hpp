// SPDX-License-Identifier: Apache-2.0
// Computes the outlook of a choice: many simulated lives of it, and their statistics.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "forecast/life.hpp"

namespace gridctl::forecast {

// Holds the range of 9 in 10 runs: between the 5th and the 95th percentile (nearest rank).
struct Spread {
  double mean = 0, low = 0, high = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);  // all 0 without values

struct Settings {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
  std::optional<double> deadline;  // seconds
  std::optional<double> budget;    // USD
  std::function<bool()> go_on;     // asked before each run; empty: always
};

// Holds means over the runs that finished; seconds and USD.
struct Figures {
  std::uint64_t runs = 0;      // tried: all, or fewer when none of the first k_hopeless finished
  std::uint64_t finished = 0;  // before the horizon
  Spread time, cost;
  double start = 0, work = 0, stalled = 0, lost = 0, recovery = 0, collecting = 0;  // add up to the mean time
  double failures = 0, attempts = 0, moves = 0;                                     // per run
  std::optional<double> in_time;                                                    // share of all runs, 0..1
  std::optional<double> in_budget;
  [[nodiscard]] bool all_finished() const { return finished == runs && runs > 0; }
  [[nodiscard]] double recovery_share() const { return time.mean > 0 ? recovery / time.mean : 0; }
};
inline constexpr std::uint64_t k_hopeless = 20;  // so many runs without an end: there will be none

// Computes the figures, deterministic by seed. nullopt: go_on returned false.
[[nodiscard]] std::optional<Figures> expect(const Grid& grid, const Choice& choice, const Settings& settings);

// Returns whether `a` is the better choice: more of its runs finish, or its mean time is shorter.
[[nodiscard]] bool faster(const Figures& a, const Figures& b);
// Prefers the cheapest choice that is as certain as the most certain one, otherwise the faster one.
[[nodiscard]] bool cheaper(const Figures& a, const Figures& b);

// Returns fixed intervals worth comparing with `tuned`: a quarter, half, double and four times, in lengths that people
// use.
[[nodiscard]] std::vector<Duration> around(Duration tuned);
// Rounds to a length of two digits: 12m34s -> 13m.
[[nodiscard]] Duration round_for_people(Duration length);

}  // namespace gridctl::forecast
