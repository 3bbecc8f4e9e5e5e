// SPDX-License-Identifier: Apache-2.0
#include "control/follow/limits.hpp"

#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"

namespace gridctl::control {

namespace {
constexpr double k_reserve_share_max = 0.1;                  // of the budget, for saving and stopping
constexpr Duration k_least_grace = std::chrono::seconds{5};  // for saving, whatever it costs
constexpr Duration k_clock_slack = std::chrono::seconds{2};  // wall clocks are slewed, and looks are not exact
}  // namespace

Result<registry::Spent> SpendMeter::read(const Ask& ask, Epoch running, double price_per_hour, BootTime now,
                                         WallTime wall) {
  if (!last_) {
    TRY_ASSIGN(const registry::Spent told, ask(wall));
    last_ = {told, told, running, now, wall};
    return told;
  }
  const Duration since = now - last_->now;
  const Duration set = wall - last_->wall - since;
  const bool was_set = set > k_clock_slack || set < -k_clock_slack;
  const bool goes_on = running == last_->running;
  Duration off = last_->running.value != 0 ? off_ : Duration{};
  if (was_set && last_->running.value != 0) off += set;
  // The registry's clock ignores changes of the wall clock since the attempt started, but the recorded end includes
  // them.
  TRY_ASSIGN(const registry::Spent told, ask(goes_on ? wall - off : wall));
  registry::Spent more{told.usd - last_->told.usd, told.ran - last_->told.ran};
  if (!goes_on && off != Duration{})
    more = {price_per_hour * seconds(since) / 3600, std::clamp<Duration>(more.ran - off, Duration{}, since)};
  off_ = goes_on ? off : Duration{};
  last_ = {{last_->spent.usd + more.usd, last_->spent.ran + more.ran}, told, running, now, wall};
  return last_->spent;
}

Epoch counted_epoch(const job::State& state) {
  return std::holds_alternative<job::Running>(state.phase) ? state.epoch : Epoch{};
}

double reserve_of(double budget, double usd_per_hour) {
  return std::min(usd_per_hour * seconds(job::k_limit_grace + k_clock_slack) / 3600, budget * k_reserve_share_max);
}

JobLimits limits_of(const job::Spec& spec, WallTime submitted_at) {
  JobLimits limits{spec.budget_total, spec.max_duration};
  if (!spec.deadline) return limits;
  limits.until = job::moment_of(*spec.deadline, submitted_at);
  limits.hard = spec.deadline->hard;
  return limits;
}

std::optional<job::LimitReached> judge_limits(const job::State& state, const JobLimits& limits,
                                              const registry::Spent& spent, WallTime now, double more_usd) {
  if (state.cancel || std::holds_alternative<job::Done>(state.phase)) return std::nullopt;
  if (limits.budget && spent.usd > 0 &&
      spent.usd + more_usd + reserve_of(*limits.budget, spent.usd_per_hour) >= *limits.budget) {
    // An expensive job has less time to save, because the rest of the budget pays for it.
    const double left = spent.usd_per_hour > 0 ? (*limits.budget - spent.usd) / spent.usd_per_hour * 3600 : 1e6;
    const double grace = std::clamp(left, seconds(k_least_grace), seconds(job::k_limit_grace));
    return job::LimitReached{
        "budget",
        formatted("its budget of %.2f USD is used up: %.2f USD spent, the rest is reserved for saving and stopping",
                  *limits.budget, spent.usd),
        std::chrono::milliseconds{std::llround(grace * 1000)}};
  }
  if (limits.most && spent.ran >= *limits.most)
    return job::LimitReached{"max_duration", "it has run for " + format_duration(*limits.most) + ", its max_duration"};
  if (limits.hard && limits.until && now >= *limits.until)
    return job::LimitReached{std::string(job::k_for_deadline),
                             "its deadline, " + format_rfc3339(*limits.until) + ", has passed"};
  return std::nullopt;
}

std::optional<job::DeadlinePassed> judge_late(const job::State& state, const JobLimits& limits, WallTime now) {
  const bool over = limits.until && !limits.hard && now >= *limits.until;
  if (!over || state.late || state.cancel || std::holds_alternative<job::Done>(state.phase)) return std::nullopt;
  return job::DeadlinePassed{"its deadline, " + format_rfc3339(*limits.until) +
                             ", has passed: the job is late, and continues"};
}

}  // namespace gridctl::control
