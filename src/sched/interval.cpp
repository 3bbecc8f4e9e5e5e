// SPDX-License-Identifier: Apache-2.0
#include "sched/interval.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::sched {

namespace {
constexpr double k_prior_failures = 0.5;          // weight of the prior, in failures
constexpr double k_rate_datacenter = 1 / 6240.0;  // per hour: one in 260 node-days (Llama 3's report)
constexpr double k_rate_home = 0.011;             // per hour: 182 interruptions in 16,800 h of consumer hosts (Salad)
constexpr double k_rate_market = 0.1;             // per hour: lower end of observed spot preemptions
constexpr double k_hysteresis = 0.10;             // relative change that is worth telling the job
constexpr int k_newton_max = 60;

double prior_rate(const std::string& host_class) {
  if (host_class == "datacenter" || host_class == "cloud") return k_rate_datacenter;
  if (host_class == "market") return k_rate_market;
  return k_rate_home;
}

Duration from_seconds(double value) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(std::llround(value * 1000))};
}

// T/Ts of Daly's complete model, inverted.
double efficiency_at(double tau, double cost, double mtbf, double restart) {
  return tau / mtbf / (std::exp(restart / mtbf) * std::expm1((tau + cost) / mtbf));
}
}  // namespace

double young_interval(double cost_s, double mtbf_s) { return std::sqrt(2 * cost_s * mtbf_s); }

double daly_interval(double cost_s, double mtbf_s) {
  if (cost_s >= 2 * mtbf_s) return mtbf_s;
  const double x = cost_s / (2 * mtbf_s);
  return young_interval(cost_s, mtbf_s) * (1 + std::sqrt(x) / 3 + x / 9) - cost_s;
}

double optimal_interval(double cost_s, double mtbf_s) {
  const double x = cost_s / mtbf_s;
  if (x < 1e-12) return young_interval(cost_s, mtbf_s);  // below it the equation drowns in rounding
  if (x > 30) return mtbf_s;                             // 1 - tau/M is below the precision of a double
  // y = tau/M = 1 + W0(-e^(-x-1)) solves log(1-y) + y + x = 0; Newton from the right falls monotonically onto the root.
  double y = 1 - std::exp(-x - 1);
  for (int i = 0; i < k_newton_max; ++i) {
    const double step = (std::log1p(-y) + y + x) * (1 - y) / y;
    y += step;
    if (std::abs(step) < 1e-13 * y) break;
  }
  return mtbf_s * y;
}

double best_efficiency(double cost_s, double mtbf_s, double restart_s) {
  return (1 - optimal_interval(cost_s, mtbf_s) / mtbf_s) * std::exp(-restart_s / mtbf_s);
}

double failure_rate_per_hour(const HostHistory& history) {
  const double prior_hours = k_prior_failures / prior_rate(history.host_class);
  return (k_prior_failures + std::max(0.0, history.failures)) / (prior_hours + std::max(0.0, history.hours));
}

double mtbf_seconds(const std::vector<HostHistory>& hosts) {
  double rate = 0;
  for (const HostHistory& host : hosts) rate += failure_rate_per_hour(host);
  return 3600 / (rate > 0 ? rate : failure_rate_per_hour({}));
}

Interval checkpoint_interval(const CheckpointCost& cost, const std::vector<HostHistory>& hosts, Duration current) {
  const double mtbf = mtbf_seconds(hosts);
  const bool measured = cost.stall > Duration{};
  const double stall = seconds(measured ? cost.stall : k_stall_assumed);
  const double low = std::max(seconds(k_interval_min), seconds(cost.upload));
  const double high = std::max(low, seconds(measured ? k_interval_max : k_interval_unmeasured_max));
  double tau = std::clamp(optimal_interval(stall, mtbf), low, high);
  const double now = seconds(current);
  if (now >= low && now <= high && std::abs(tau - now) <= k_hysteresis * now) tau = now;
  Interval out;
  out.every = from_seconds(tau);
  out.efficiency = efficiency_at(tau, stall, mtbf, seconds(cost.restart) + seconds(cost.upload));
  out.reason = "every " + format_duration(out.every) + ": a checkpoint " +
               (measured ? "stalls " : "is assumed to stall ") + format_duration(from_seconds(stall)) +
               ", one failure in " + format_duration(from_seconds(mtbf)) + " expected";
  return out;
}

}  // namespace gridctl::sched
