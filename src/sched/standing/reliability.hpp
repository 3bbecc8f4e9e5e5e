// SPDX-License-Identifier: Apache-2.0
// Estimates how often a host or a GPU fails, from observations. Pure.
//
// Failures are counted over all hours observed, including those that ended without one (censored observations): the
// mean
// of the lifetimes that did end is wrong by a factor of 2.6 on Salad's consumer hosts. A failure rate L has a Gamma
// prior
// of the host's class, Gamma(a0, a0 / class rate), and after k failures in T hours the posterior Gamma(a0 + k, b0 + T).
//
// Hosts change: hazards fall with age, and spot markets have better and worse days. So each host has two memories: a
// long one in which every hour counts the same, and a recent one in which the weight of an hour halves every 36 hours,
// with the long one as its prior. The expected rate is between them, two thirds of the way (in the logarithm) towards
// the recent one. Among the alternatives tried (no memory loss, other half-lives and shares, a power-law process after
// Duane and Crow), this predicted the second halves of 23 published spot traces best from their first halves; six other
// traces of the same publication were left for the test (tests/data/spot). The band includes the change between two
// halves too: the failures alone would make it far too narrow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace gridctl::sched {

// Holds a time during which the host answered. REQUIRES: began_at <= ended_at.
struct Watched {
  WallTime began_at, ended_at;
  bool failed = false;  // it ended by a failure; else the watching ended, or goes on
};

struct Reliability {
  double rate_per_hour = 0;  // failures expected per hour up
  double low_per_hour = 0;   // 90 % band of the rate
  double high_per_hour = 0;
  double hours = 0;                  // watched
  int failures = 0;                  // seen
  double up_share = 1;               // expected share of the time that it is up, 0..1: `reliability` of queries
  std::optional<double> seen_share;  // the same, as seen; nullopt before the first failure was over

  [[nodiscard]] double mtbf_hours() const { return 1 / rate_per_hour; }
  [[nodiscard]] double mtbf_low_hours() const { return 1 / high_per_hour; }
  [[nodiscard]] double mtbf_high_hours() const { return 1 / low_per_hour; }
};

// Returns the failures per hour of a host of which only the class is known: datacenter, cloud, market, otherwise home.
[[nodiscard]] double class_rate_per_hour(std::string_view host_class);
// Failures of one GPU per hour: 220 of them in 54 days of 16,384 (Llama 3's report: faulty GPUs and their memory).
inline constexpr double k_gpu_rate_per_hour = 1.04e-5;

// Estimates reliability from this prior rate and these observations, in any order. The time from a failure to the next
// observation counts as down; time after a censored one is not known and does not count. REQUIRES: prior > 0.
[[nodiscard]] Reliability estimate(double prior_per_hour, std::vector<Watched> seen, WallTime now);

// Returns (a0 + failures) / (b0 + hours): the long memory alone, for things that fail too rarely to have a recent one.
[[nodiscard]] double posterior_rate(double prior_per_hour, double hours, double failures);

// Formats hours as "30min", "8.5h", "36h" or "21d".
[[nodiscard]] std::string short_hours(double hours);
// Returns "4d (1d-21d)": the time to the next failure, and the band.
[[nodiscard]] std::string describe(const Reliability& reliability);

// For hosts of one class, returns the rate that half of them stay below; the class prior counts as one more host, so
// that two bad hosts are not each other's norm. REQUIRES: prior > 0.
[[nodiscard]] double median_rate(std::vector<double> rates_per_hour, double prior_per_hour);
// Returns why to avoid the host while there are others: its rate is 5 times the usual one, after at least 3 failures.
// Empty if it is as good as others. (Meta cut failures of large jobs from 14 % to 4 % by leaving such hosts out.)
[[nodiscard]] std::string lemon_reason(const Reliability& host, std::string_view host_class, double median_per_hour);

// Returns the value that 9 of 10 do not exceed (nearest rank); nullopt without values.
[[nodiscard]] std::optional<Duration> ninetieth(std::vector<Duration> values);

}  // namespace gridctl::sched
