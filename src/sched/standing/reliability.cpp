// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/reliability.hpp"

#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"
#include "base/host_words.hpp"
#include "sched/standing/gamma.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_prior_failures = 0.5;          // weight of a prior, in failures: a week of own data outweighs it
constexpr double k_rate_datacenter = 1 / 6240.0;  // per hour: one in 260 node-days (Llama 3's report)
constexpr double k_rate_home = 0.011;             // per hour: 182 interruptions in 16,800 h of consumer hosts (Salad)
constexpr double k_rate_market = 0.1;             // per hour: lower end of observed spot preemptions
constexpr double k_half_life_hours = 36;          // of the recent memory
constexpr double k_recent_share = 2.0 / 3;        // of it in the logarithm of the rate
constexpr double k_change = 0.5;                  // standard deviation, in the logarithm, between past and future rate
constexpr double k_band = 0.05;                   // on either side
constexpr double k_outage_hours = 1;              // assumed length of one, until some were seen
constexpr double k_lemon_factor = 5;
constexpr int k_lemon_failures = 3;  // fewer are bad luck

double hours_between(WallTime from, WallTime to) { return static_cast<double>(to.ms - from.ms) / 3'600'000.0; }

struct Counted {
  double hours = 0, failures = 0;
};

Counted count(const std::vector<Watched>& seen) {
  Counted all;
  for (const Watched& w : seen) {
    all.hours += hours_between(w.began_at, w.ended_at);
    all.failures += w.failed ? 1 : 0;
  }
  return all;
}

// Counts like count(), with a weight that halves every k_half_life_hours back from `now`.
Counted count_recent(const std::vector<Watched>& seen, WallTime now) {
  const double scale = k_half_life_hours / std::log(2.0);
  Counted recent;
  for (const Watched& w : seen) {
    const double end = std::exp(std::min(0.0, hours_between(now, w.ended_at)) / scale);
    const double begin = std::exp(std::min(0.0, hours_between(now, w.began_at)) / scale);
    recent.hours += scale * (end - begin);
    recent.failures += w.failed ? end : 0;
  }
  return recent;
}

struct Posterior {
  double shape = 0, hours = 0;
  [[nodiscard]] double mean() const { return shape / hours; }
};
Posterior update(double prior_per_hour, const Counted& seen) {
  return {k_prior_failures + seen.failures, k_prior_failures / prior_per_hour + seen.hours};
}

double hours_down(const std::vector<Watched>& seen) {
  double down = 0;
  WallTime up_until{};
  bool failed = false;
  for (const Watched& w : seen) {
    if (failed && w.began_at > up_until) down += hours_between(up_until, w.began_at);
    if (w.ended_at < up_until) continue;
    up_until = w.ended_at;
    failed = w.failed;
  }
  return down;
}
}  // namespace

std::string short_hours(double hours) {
  if (hours < 1) return formatted("%.0fmin", hours * 60);
  if (hours < 48) return formatted("%.*fh", hours < 10 ? 1 : 0, hours);
  return hours < 24 * 1000 ? formatted("%.0fd", hours / 24) : ">1000d";
}

double class_rate_per_hour(std::string_view host_class) {
  if (is_steady_class(host_class)) return k_rate_datacenter;
  if (host_class == k_class_market) return k_rate_market;
  return k_rate_home;
}

Reliability estimate(double prior_per_hour, std::vector<Watched> seen, WallTime now) {
  std::ranges::sort(seen, {}, &Watched::began_at);
  const Counted all = count(seen);
  const Posterior whole = update(prior_per_hour, all);
  const Posterior recent = update(whole.mean(), count_recent(seen, now));
  Reliability out;
  out.rate_per_hour = std::pow(whole.mean(), 1 - k_recent_share) * std::pow(recent.mean(), k_recent_share);
  // The logarithm of a Gamma rate has a variance of about 1
  // shape. The two memories share data: their deviations add.
  const double deviation = (1 - k_recent_share) / std::sqrt(whole.shape) + k_recent_share / std::sqrt(recent.shape);
  const double shape = 1 / (deviation * deviation + k_change * k_change);
  out.low_per_hour = out.rate_per_hour * gamma_quantile(shape, k_band) / shape;
  out.high_per_hour = out.rate_per_hour * gamma_quantile(shape, 1 - k_band) / shape;
  out.hours = all.hours;
  out.failures = static_cast<int>(all.failures);
  const double down = hours_down(seen);
  const double up_prior = k_prior_failures / prior_per_hour, down_prior = k_prior_failures * k_outage_hours;
  out.up_share = (all.hours + up_prior) / (all.hours + up_prior + down + down_prior);
  if (down > 0) out.seen_share = all.hours / (all.hours + down);
  return out;
}

double posterior_rate(double prior_per_hour, double hours, double failures) {
  return update(prior_per_hour, {hours, failures}).mean();
}

std::string describe(const Reliability& reliability) {
  return short_hours(reliability.mtbf_hours()) + " (" + short_hours(reliability.mtbf_low_hours()) + "-" +
         short_hours(reliability.mtbf_high_hours()) + ")";
}

double median_rate(std::vector<double> rates_per_hour, double prior_per_hour) {
  rates_per_hour.push_back(prior_per_hour);
  const auto middle = rates_per_hour.begin() + static_cast<std::ptrdiff_t>((rates_per_hour.size() - 1) / 2);
  std::nth_element(rates_per_hour.begin(), middle, rates_per_hour.end());
  return *middle;
}

std::string lemon_reason(const Reliability& host, std::string_view host_class, double median_per_hour) {
  if (host.failures < k_lemon_failures || host.rate_per_hour <= k_lemon_factor * median_per_hour) return {};
  return formatted("it fails %.0f times as often as %.*s hosts usually do: %d failures in %s",
                   host.rate_per_hour / median_per_hour, static_cast<int>(std::min<std::size_t>(host_class.size(), 32)),
                   host_class.data(), host.failures, short_hours(host.hours).c_str());
}

std::optional<Duration> ninetieth(std::vector<Duration> values) {
  if (values.empty()) return std::nullopt;
  const std::size_t rank = (values.size() * 9 + 9) / 10 - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

}  // namespace gridctl::sched
