// SPDX-License-Identifier: Apache-2.0
#include "control/follow/allowances.hpp"

#include <algorithm>
#include <utility>

#include "control/fleet/fleet.hpp"

namespace gridctl::control {

void Dealing::assume(const std::string& key, double usd_per_hour, BootTime lease_ends) {
  slices_.try_emplace(key, Slice{usd_per_hour, BootTime{}, lease_ends, true});
}

void Dealing::tell(const std::string& key, double usd_per_hour, BootTime until) {
  Slice& slice = slices_.try_emplace(key, Slice{usd_per_hour, until, until}).first->second;
  slice.usd_per_hour = usd_per_hour;
  slice.assumed = false;
  slice.told = until;
  slice.until = std::max(slice.until, until);
}

void Dealing::reported(const std::string& key, std::optional<BootTime> until) {
  const auto found = slices_.find(key);
  if (found == slices_.end()) return;
  Slice& slice = found->second;
  if (!slice.assumed) slice.until = std::max(slice.told, until.value_or(slice.told));
  else if (until) slice.until = *until;
  slice.assumed = false;
}

std::optional<Duration> Dealing::known_left(const std::string& key, BootTime now) const {
  const auto found = slices_.find(key);
  if (found == slices_.end() || found->second.assumed) return std::nullopt;
  return std::max(found->second.until - now, Duration{});
}

double Dealing::held(const std::string& key, BootTime now) const {
  const auto found = slices_.find(key);
  if (found == slices_.end()) return 0;
  return found->second.usd_per_hour * std::max(seconds(found->second.until - now), 0.0) / 3600;
}

Duration slice_of(double left_usd, double held_by_others_usd, double usd_per_hour, double usd_per_hour_of_all,
                  Duration most) {
  if (usd_per_hour <= 0) return most;
  const double share = left_usd * usd_per_hour / std::max(usd_per_hour_of_all, usd_per_hour);
  const double usd = std::max(std::min(share, left_usd - held_by_others_usd), 0.0);
  const double hours = usd / usd_per_hour;
  if (hours * 3600 >= seconds(most)) return most;
  return std::chrono::nanoseconds{static_cast<std::int64_t>(hours * 3.6e12)};
}

namespace {

constexpr std::string_view k_limit_total = "budget";
constexpr Duration k_budgets_fresh = std::chrono::seconds{1};
constexpr Duration k_first_slice = std::chrono::seconds{20};   // out of what is kept back for saving, until others give
constexpr double k_longest_h = 24 * 366;                       // keeps sums of times far from overflow
constexpr Duration k_jitter = std::chrono::milliseconds{200};  // of our clocks: no reason to tell hosts something new

std::string key_of(const TrackedJob& job) { return job.id().value + "/" + std::to_string(job.state().epoch.value); }

// Workers of one bag on one host together cost what one of them costs.
std::string payer_of(const TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  if (!job.spec().tasks || attempt == nullptr) return key_of(job);
  return job.leader_id().value + "@" + attempt->lead().host.value;
}

std::string job_in(const std::string& key) { return key.substr(0, key.find('/')); }

Duration hours(double count) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::clamp(count, 0.0, k_longest_h) * 3.6e12)};
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

double price_with_twins(const JobBook& book, const TrackedJob& leader) {
  std::map<std::string, double> prices;  // by payer
  const auto add = [&](const TrackedJob& job) {
    double& price = prices[payer_of(job)];
    price = std::max(price, job.state().price_per_hour());
  };
  add(leader);
  for (const auto& [id, other] : book.placed())
    if (other->spec().twin_of == leader.id()) add(*other);
  double sum = 0;
  for (const auto& [payer, price] : prices) sum += price;
  return sum;
}

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

std::optional<BootTime> Allowances::deadline_of(const TrackedJob& job) const {
  const JobLimits limits = limits_of(job.spec(), job.row.submitted_at);
  if (!limits.hard || !limits.until) return std::nullopt;
  const std::int64_t left_ms = std::max<std::int64_t>(limits.until->ms - world_.clock.wall().ms, 0);
  return world_.clock.boot() + hours(static_cast<double>(left_ms) / 3.6e6);
}

// Returns the other attempts that use up the same amount, and how much of it they hold.
Allowances::Payers Allowances::payers(const TrackedJob& job, const Counts& counts) {
  const BootTime now = world_.clock.boot();
  const std::string mine = payer_of(job);
  std::map<std::string, double> prices, held;  // by payer
  Payers all;
  for (const auto& [id, other] : book_.placed()) {
    const double price = other->state().price_per_hour();
    if (!counts(*other) || !is_alive(*other) || price <= 0) continue;
    const std::string payer = payer_of(*other), key = key_of(*other);
    prices[payer] = std::max(prices[payer], price);
    if (other->in<job::Launching>() == nullptr && other->id() != job.id())
      dealing_.assume(key, price, now + other->state().policy.lease);
    held[payer] = std::max(held[payer], dealing_.held(key, now));
    const std::optional<Duration> known = dealing_.known_left(key, now);
    if (payer == mine) all.own = std::max(all.own, known.value_or(Duration{}));
    if (other->id() == job.id()) all.is_known = known.has_value() || other->in<job::Launching>() != nullptr;
  }
  for (const auto& [payer, price] : prices) {
    all.usd_per_hour += price;
    if (payer == mine) continue;
    all.alone = false;
    all.held_by_others += held[payer];
  }
  return all;
}

// Returns the share that one job may use when all running jobs divide the rest. A job keeps what it already holds
// within its share, whatever others hold: that does not increase the sum.
Duration Allowances::slice_from(const Pool& pool, const Payers& payers, const TrackedJob& job) const {
  const double price = job.state().price_per_hour();
  const Duration share = slice_of(pool.left, 0, price, payers.usd_per_hour, pool.most);
  Duration slice = slice_of(pool.left, payers.held_by_others, price, payers.usd_per_hour, pool.most);
  slice = std::max(slice, std::min(share, payers.own));
  // The other attempts hold the complete budget until they get smaller slices, so this one starts with the reserve.
  if (job.in<job::Launching>() != nullptr && slice < k_first_slice && !pool.used_up)
    slice = slice_of(pool.left + pool.reserve, payers.held_by_others, price, price, k_first_slice);
  return slice;
}

Duration Allowances::slice_of_month(const BudgetNow& budget, const TrackedJob& job) {
  const Payers all = payers(job, [&](const TrackedJob& other) {
    return budget.budget.owner.empty() || other.spec().owner == budget.budget.owner;
  });
  const double reserve = reserve_of(budget.budget.usd_month, all.usd_per_hour);
  const double left = budget.used_up ? 0 : budget.budget.usd_month - budget.spending.usd - reserve;
  return slice_from({left, reserve, job.state().policy.lease, budget.used_up}, all, job);
}

void Allowances::lessen_by_total(const TrackedJob& job, const TrackedJob& leader, double spent_usd, Left& left) {
  const double budget = *leader.spec().budget_total;
  const double price = price_with_twins(book_, leader);
  if (price <= 0) return;
  const Payers all = payers(job, [&](const TrackedJob& other) { return other.id() == leader.id() || other.spec().twin_of == leader.id(); });
  const double reserve = reserve_of(budget, price);
  const double usd = budget - reserve - spent_usd;
  if (all.alone) return left.lessen(hours(usd / price), k_limit_total);
  if (job.state().price_per_hour() <= 0) return;
  const Duration slice = slice_from({usd, reserve, hours(k_longest_h), usd + reserve <= 0}, all, job);
  left.keeps = !all.is_known;
  left.waits = slice < k_first_slice && all.held_by_others > 0;  // nobody else will ever give anything back
  left.lessen(slice, k_limit_total);
}

void Allowances::lessen_by_months(const TrackedJob& job, Left& left) {
  if (job.state().price_per_hour() <= 0) return;
  std::optional<Duration> slice;
  for (const BudgetNow& budget : budgets()) {
    if (!budget.budget.owner.empty() && budget.budget.owner != job.spec().owner) continue;
    const Duration one = slice_of_month(budget, job);
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
        ask, counted_epoch(one.state()), price_with_twins(book_, one), world_.clock.boot(), world_.clock.wall());
    report(spent, "while counting what a job has used");
    left.whole = left.whole || !spent;
    return spent ? *spent : registry::Spent{};
  };
  if (limits.most) left.lessen(*limits.most - spent_by(job).ran, "max_duration");
  if (leader != nullptr && leader->spec().budget_total) lessen_by_total(job, *leader, spent_by(*leader).usd, left);
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
  if (left.run && !left.waits) dealing_.tell(key_of(job), job.state().price_per_hour(), world_.clock.boot() + *left.run);
  return AtStart{left.run, std::move(left.limit), deadline_of(job), left.waits};
}

std::optional<HostMonitor::AttemptLimits> Allowances::running(const TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr || !attempt->started_at || !is_alive(job)) return std::nullopt;
  const std::string key = key_of(job);
  if (!concern(job) && !told_.contains(key)) return std::nullopt;
  Left left = left_of(job);
  if (left.keeps) dealing_.assume(key, job.state().price_per_hour(), world_.clock.boot() + job.state().policy.lease);
  if (left.whole || left.keeps) return std::nullopt;
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
