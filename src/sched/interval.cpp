// SPDX-License-Identifier: Apache-2.0
#include "sched/interval.hpp"

#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"
#include "sched/replication.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_soon_share = 0.10;  // of the time, for saving, while a move waits for a checkpoint
constexpr double k_hysteresis = 0.10;  // relative change that is worth telling the job
constexpr int k_newton_max = 60;

constexpr double k_century = 3.2e9;  // seconds; hosts that hardly ever fail are not told more exactly
Duration from_seconds(double value) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(std::llround(std::min(value, k_century) * 1000))};
}

// Uses units that people read: 12m34s, not 12m34.567s.
std::string people(Duration duration) {
  using namespace std::chrono;
  if (duration < std::chrono::seconds{10}) return format_duration(round<milliseconds>(duration));
  if (duration < hours{1}) return format_duration(round<std::chrono::seconds>(duration));
  if (duration < hours{48}) return format_duration(round<minutes>(duration));
  return format_duration(round<hours>(duration));
}

}  // namespace

double young_interval(double cost_s, double mtbf_s) { return std::sqrt(2 * cost_s * mtbf_s); }

double optimal_interval(double cost_s, double mtbf_s) {
  const double x = cost_s / mtbf_s;
  if (x < 1e-12) return young_interval(cost_s, mtbf_s);  // below it the equation drowns in rounding
  if (x > 30) return mtbf_s;                             // 1 - tau/M is below the precision of a double
  // y = tau/M = 1 + W0(-e^(-x-1)) solves log(1-y) + y + x = 0; Newton from the right falls monotonically onto the root.
  // Young's value is to the right of it, and near for small x.
  double y = std::min(1 - std::exp(-x - 1), std::sqrt(2 * x));
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

double expected_time(double work_s, double interval_s, double cost_s, double mtbf_s, double restart_s,
                     double unexposed_s) {
  return (mtbf_s + unexposed_s) * std::exp(restart_s / mtbf_s) * std::expm1((interval_s + cost_s) / mtbf_s) * work_s /
         interval_s;
}

Interval checkpoint_interval(const CheckpointCost& cost, double rate_per_hour, Duration current) {
  const double mtbf = 3600 / rate_per_hour;
  const bool measured = cost.stall > Duration{};
  const double stall = seconds(measured ? cost.stall : k_stall_assumed);
  const double low = std::max(seconds(k_interval_min), seconds(cost.upload));
  const double high = std::max(low, seconds(measured ? k_interval_max : k_interval_unmeasured_max));
  double tau = std::clamp(optimal_interval(stall, mtbf), low, high);
  const double now = seconds(current);
  if (now >= low && now <= high && std::abs(tau - now) <= k_hysteresis * now) tau = now;
  Interval out;
  out.every = from_seconds(tau);
  out.soon = from_seconds(std::min(tau, std::max(low, measured ? stall / k_soon_share : 0)));
  out.pause = std::min(out.every / 2, std::max(k_pause_min, cost.upload));
  const double restart = seconds(cost.restart) + seconds(cost.upload);
  out.efficiency = 1 / expected_time(1, tau, stall, mtbf, restart);
  const std::string share = formatted("%.1f %%", out.efficiency * 100);
  out.reason = people(out.every) + ": saving " + (measured ? "pauses" : "is assumed to pause") +
               " the job for " + people(from_seconds(stall)) +
               (cost.upload > Duration{} ? ", a checkpoint is safe after " + people(cost.upload) : "") +
               "; expected: one failure every " + people(from_seconds(mtbf)) + ", " + people(cost.restart) +
               " to recover, " + share + " useful work";
  if (measured)
    if (const auto advice = replication_advice({1, mtbf, stall, restart})) out.reason += "; " + *advice;
  return out;
}

}  // namespace gridctl::sched
