// SPDX-License-Identifier: Apache-2.0
#include "control/follow/allowances.hpp"

#include <algorithm>
#include <utility>

#include "control/fleet/fleet.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_budgets_fresh = std::chrono::seconds{1};
constexpr Duration k_first_slice = std::chrono::seconds{20};   // out of what is kept back for saving, until others give
constexpr Duration k_jitter = std::chrono::milliseconds{200};  // of our clocks: no reason to tell hosts something new

std::string key_of(const TrackedJob& job) { return job.id().value + "/" + std::to_string(job.state().epoch.value); }

std::string job_in(const std::string& key) { return key.substr(0, key.find('/')); }

Duration hours(double count) {
  constexpr double k_longest = 24 * 366;  // keeps sums of times far from overflow
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::clamp(count, 0.0, k_longest) * 3.6e12)};
}

bool is_alive(const TrackedJob& job) {
  return job.state().attempt() != nullptr && job.in<job::Collecting>() == nullptr;
}

std::optional<BootTime> steady(std::optional<BootTime> now, std::optional<BootTime> before) {
  if (!now || !before) return now;
  const Duration apart = *now > *before ? *now - *before : *before - *now;
  return apart < k_jitter ? before : now;
}

}  // namespace

void Allowances::Left::lessen(Duration by, std::string_view of) {
  if (run && *run <= by) return;
  run = std::max(by, Duration{});
  limit = of;
}

const std::vector<BudgetNow>& Allowances::budgets() {
  const BootTime now = world_.clock.boot();
  if (budgets_at_ && now - *budgets_at_ < k_budgets_fresh) return budgets_;
  Result<std::vector<BudgetNow>> fresh = budgets_now(world_.records, world_.clock.wall());
  if (!fresh) report(fresh.error(), "while looking at budgets");  // what was known last stays
  else budgets_ = *std::move(fresh);
  budgets_at_ = now;
  return budgets_;
}

double Allowances::price_with_twins(const TrackedJob& leader) const {
  double price = leader.state().price_per_hour();
  for (const auto& [id, other] : book_.placed())
    if (other->spec().twin_of == leader.id()) price += other->state().price_per_hour();
  return price;
}

std::optional<BootTime> Allowances::deadline_of(const TrackedJob& job) const {
  const JobLimits limits = limits_of(job.spec(), job.row.submitted_at);
  if (!limits.hard || !limits.until) return std::nullopt;
  const std::int64_t left_ms = std::max<std::int64_t>(limits.until->ms - world_.clock.wall().ms, 0);
  return world_.clock.boot() + hours(static_cast<double>(left_ms) / 3.6e6);
}

// Returns the share of a month's budget that one job may use, when all running jobs divide the rest.
Duration Allowances::slice_from(const BudgetNow& budget, const TrackedJob& job) {
  const BootTime now = world_.clock.boot();
  const double price = job.state().price_per_hour();
  double of_all = 0, held = 0;
  for (const auto& [id, other] : book_.placed()) {
    const bool counts = budget.budget.owner.empty() || other->spec().owner == budget.budget.owner;
    if (!counts || !is_alive(*other) || other->state().price_per_hour() <= 0) continue;
    of_all += other->state().price_per_hour();
    if (other->id() == job.id()) continue;
    if (other->in<job::Launching>() == nullptr)
      dealing_.assume(key_of(*other), other->state().price_per_hour(), now + other->state().policy.lease);
    held += dealing_.held(key_of(*other), now);
  }
  const double reserve = reserve_of(budget.budget.usd_month, of_all);
  const double left = budget.used_up ? 0 : budget.budget.usd_month - budget.spending.usd - reserve;
  Duration slice = slice_of(left, held, price, of_all, job.state().policy.lease);
  // The others hold all of it until they are told: it begins with what is kept back.
  if (job.in<job::Launching>() != nullptr && slice < k_first_slice && !budget.used_up)
    slice = slice_of(left + reserve, held, price, price, k_first_slice);
  return slice;
}

void Allowances::lessen_by_months(const TrackedJob& job, Left& left) {
  if (job.state().price_per_hour() <= 0) return;
  std::optional<Duration> slice;
  for (const BudgetNow& budget : budgets()) {
    if (!budget.budget.owner.empty() && budget.budget.owner != job.spec().owner) continue;
    const Duration one = slice_from(budget, job);
    slice = std::min(slice.value_or(one), one);
  }
  if (!slice) return;
  left.lessen(*slice, k_limit_month);
}

Allowances::Left Allowances::left_of(const TrackedJob& job) {
  Left left;
  const TrackedJob* leader = job.spec().twin_of.empty() ? &job : book_.find(job.spec().twin_of);
  const JobLimits limits = limits_of(job.spec(), job.row.submitted_at);
  const auto spent_by = [&](const TrackedJob& one) -> registry::Spent {
    const auto ask = [&](WallTime until) { return world_.records.spent(one.id(), until); };
    const Result<registry::Spent> spent = meters_[one.id().value].read(
        ask, counted_epoch(one.state()), price_with_twins(one), world_.clock.boot(), world_.clock.wall());
    if (!spent) report(spent.error(), "while counting what a job has used");
    left.whole = left.whole || !spent;
    return spent ? *spent : registry::Spent{};
  };
  if (limits.most) left.lessen(*limits.most - spent_by(job).ran, "max_duration");
  if (leader != nullptr && leader->spec().budget_total) {
    const double budget = *leader->spec().budget_total;
    const double price = price_with_twins(*leader);
    if (price > 0) left.lessen(hours((budget - reserve_of(budget, price) - spent_by(*leader).usd) / price), "budget");
  }
  lessen_by_months(job, left);
  return left;
}

bool Allowances::concern(const TrackedJob& job) {
  const JobLimits limits = limits_of(job.spec(), job.row.submitted_at);
  if (limits.budget || limits.most || (limits.until && limits.hard) || !job.spec().twin_of.empty()) return true;
  return !budgets().empty();
}

std::optional<Allowances::AtStart> Allowances::at_start(const TrackedJob& job) {
  budgets_at_.reset();  // one that was set just now binds: whoever starts without a limit has none until the next poll
  if (!concern(job)) return std::nullopt;
  Left left = left_of(job);
  if (left.run) dealing_.tell(key_of(job), job.state().price_per_hour(), world_.clock.boot() + *left.run);
  return AtStart{left.run, std::move(left.limit), deadline_of(job)};
}

std::optional<HostMonitor::AttemptLimits> Allowances::running(const TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr || !attempt->started_at || !is_alive(job)) return std::nullopt;
  const std::string key = key_of(job);
  if (!concern(job) && !told_.contains(key)) return std::nullopt;
  Left left = left_of(job);
  if (left.whole) return std::nullopt;
  HostMonitor::AttemptLimits limits;
  const BootTime now = world_.clock.boot();
  if (left.run) limits = {now + *left.run, std::move(left.limit), {}};
  limits.time_until = deadline_of(job);
  HostMonitor::AttemptLimits& told = told_[key];
  limits.run_until = steady(limits.run_until, told.run_until);
  limits.time_until = steady(limits.time_until, told.time_until);
  told = limits;
  if (limits.run_until) dealing_.tell(key, job.state().price_per_hour(), *limits.run_until);
  return limits;
}

void Allowances::reported(const TrackedJob& job, std::optional<Duration> left) {
  const std::string key = key_of(job);
  dealing_.reported(key, left ? std::optional{world_.clock.boot() + *left} : std::nullopt);
  if (job.in<job::Launching>() == nullptr) return;
  std::erase_if(told_, [&](const auto& one) { return job_in(one.first) == job.id().value && one.first != key; });
}

void Allowances::forgotten(const JobId& id) {
  meters_.erase(id.value);
  std::erase_if(told_, [&](const auto& one) { return job_in(one.first) == id.value; });
  dealing_.keep_only([&](const std::string& key) { return job_in(key) != id.value; });
}

}  // namespace gridctl::control
