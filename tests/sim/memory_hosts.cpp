// SPDX-License-Identifier: Apache-2.0
// Hosts and money.
#include <algorithm>

#include "memory_records.hpp"
#include "registry/registry.hpp"

namespace gridctl::sim {

using registry::AttemptRecord;
using registry::HostEvent;
using registry::HostReport;
using registry::HostSpan;
using registry::Provider;

namespace {
constexpr double k_ms_of_an_hour = 3.6e6;
}

// Moves for what others write; who watches adds that.
Result<std::int64_t> MemoryRecords::data_version() {
  TRY(read());
  return 0;
}

Result<void> MemoryRecords::add_provider(const Provider& provider) {
  providers_[provider.name.value] = provider;
  return {};
}

Result<void> MemoryRecords::update_provider(const Provider& provider) {
  TRY(before_commit());
  providers_[provider.name.value] = provider;
  return after_commit();
}

Result<void> MemoryRecords::set_liveness(const HostName& name, const std::string& liveness,
                                         std::optional<WallTime> seen) {
  TRY(before_commit());
  const auto found = providers_.find(name.value);
  if (found == providers_.end()) return make_error(Code::not_found, "no provider " + name.value);
  found->second.liveness = liveness;
  if (seen) found->second.last_seen_at = seen;
  return after_commit();
}

Result<std::vector<Provider>> MemoryRecords::providers() {
  TRY(read());
  std::vector<Provider> all;
  all.reserve(providers_.size());
  for (const auto& [name, provider] : providers_) all.push_back(provider);
  return all;
}

Result<void> MemoryRecords::save_figures(const HostName& name,
                                         const std::map<std::string, std::optional<double>>& figures) {
  TRY(before_commit());
  for (const auto& [figure, value] : figures)
    if (value) providers_[name.value].figures[figure] = *value;
    else providers_[name.value].figures.erase(figure);
  return after_commit();
}

// Only specifications go back as they were: nothing else is written beside them.
Result<void> MemoryRecords::together(const std::function<Result<void>()>& writes) {
  undo_.clear();
  Result<void> done = writes();
  if (done && !undo_.empty()) done = before_commit();
  if (!done)
    for (const auto& [id, spec] : undo_) rows_[id].row.spec = spec;
  const bool changed = done.has_value() && !std::exchange(undo_, {}).empty();
  return changed ? after_commit() : done;
}

Result<void> MemoryRecords::add_host_event(const HostEvent& event) {
  TRY(before_commit());
  host_events_[event.provider.value].push_back(event);
  return after_commit();
}

Result<std::vector<HostEvent>> MemoryRecords::host_events(const HostName& name, std::size_t limit) {
  TRY(read());
  std::vector<HostEvent> list = host_events_[name.value];
  if (limit > 0 && list.size() > limit) list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(limit));
  return list;
}

Result<void> MemoryRecords::save_host_report(const HostReport& report) {
  TRY(before_commit());
  reports_[{report.provider.value, report.kind}] = report;
  return after_commit();
}

Result<std::optional<HostReport>> MemoryRecords::host_report(const HostName& name, const std::string& kind) {
  TRY(read());
  const auto found = reports_.find({name.value, kind});
  return found == reports_.end() ? std::optional<HostReport>{} : std::optional{found->second};
}

Result<std::vector<HostReport>> MemoryRecords::host_reports(const std::string& kind) {
  TRY(read());
  std::vector<HostReport> list;
  for (const auto& [key, report] : reports_)
    if (key.second == kind) list.push_back(report);
  return list;
}

Result<void> MemoryRecords::save_host_span(const HostSpan& span) {
  TRY(before_commit());
  std::vector<HostSpan>& all = spans_[span.provider.value];
  const auto same = std::find_if(all.begin(), all.end(), [&](const HostSpan& known) {
    return known.unit == span.unit && known.began_at == span.began_at;
  });
  if (same == all.end()) all.push_back(span);
  else *same = span;
  return after_commit();
}

Result<std::vector<HostSpan>> MemoryRecords::host_spans(const HostName& name) {
  TRY(read());
  return spans_[name.value];
}

// Wall time of each attempt at the price that it began with, and what changed prices add.
double MemoryRecords::usd_of(const Row& row, WallTime from, WallTime now) {
  double usd = 0;
  for (const AttemptRecord& a : row.attempts) {
    if (!a.started_at) continue;
    const std::int64_t end = a.ended_at ? a.ended_at->ms : now.ms;
    const auto since = [&](std::int64_t at) {
      return static_cast<double>(std::max<std::int64_t>(end - std::max({a.started_at->ms, at, from.ms}), 0));
    };
    usd += a.price_per_hour * since(0) / k_ms_of_an_hour;
    for (const PriceChange& change : row.price_changes)
      if (change.number == a.number) usd += change.more * since(change.at.ms) / k_ms_of_an_hour;
  }
  return usd;
}

// Counts as the registry does what the workers of a bag share.
registry::SharedPrice MemoryRecords::shared_in(const JobId& leader, WallTime from, WallTime now) const {
  std::vector<registry::WorkerRun> runs;
  for (const auto& [id, row] : rows_) {
    const job::Spec& spec = row.row.spec;
    if (!spec.tasks || (row.row.id != leader && spec.twin_of != leader)) continue;
    for (const AttemptRecord& a : row.attempts) {
      if (!a.started_at) continue;
      registry::WorkerRun run{a.provider.value, a.started_at->ms, a.ended_at.value_or(now).ms, !a.ended_at, a.price_per_hour};
      for (const PriceChange& change : row.price_changes)
        if (change.number == a.number) run.changes.push_back({change.at.ms, change.more});
      runs.push_back(std::move(run));
    }
  }
  return registry::shared_by(runs, from.ms);
}

Result<registry::Spent> MemoryRecords::spent(const JobId& id, WallTime now) {
  TRY_ASSIGN(const Row* row, find(id));
  registry::Spent spent{usd_of(*row, {}, now), {}};
  for (const AttemptRecord& a : row->attempts)
    if (a.started_at)
      spent.ran += std::chrono::milliseconds{
          std::max<std::int64_t>((a.ended_at ? a.ended_at->ms : now.ms) - a.started_at->ms, 0)};
  for (const auto& [other_id, other] : rows_)
    if (other.row.spec.twin_of == id) spent.usd += usd_of(other, {}, now);
  spent.usd -= shared_in(id, {}, now).usd;
  return spent;
}

Result<registry::Spending> MemoryRecords::spending(const std::string& owner, WallTime from, WallTime now) {
  TRY(read());
  registry::Spending out;
  for (const auto& [id, row] : rows_) {
    if (!owner.empty() && row.row.spec.owner != owner) continue;
    out.usd += usd_of(row, from, now);
    for (const AttemptRecord& a : row.attempts) {
      if (!a.started_at || a.ended_at) continue;
      out.usd_per_hour += a.price_per_hour;
      for (const PriceChange& change : row.price_changes)
        if (change.number == a.number) out.usd_per_hour += change.more;
    }
    if (!row.row.spec.tasks || !row.row.spec.twin_of.empty()) continue;
    const registry::SharedPrice shared = shared_in(row.row.id, from, now);
    out.usd -= shared.usd;
    out.usd_per_hour -= shared.usd_per_hour;
  }
  return out;
}

Result<void> MemoryRecords::save_budget(const registry::Budget& budget) {
  TRY(before_commit());
  budgets_[budget.owner] = {budget.owner, budget.usd_month};
  return after_commit();
}

Result<void> MemoryRecords::note_used_up(const std::string& owner, const std::string& month) {
  TRY(before_commit());
  if (const auto found = budgets_.find(owner); found != budgets_.end()) found->second.used_up = month;
  return after_commit();
}

Result<std::vector<registry::Budget>> MemoryRecords::budgets() {
  TRY(read());
  std::vector<registry::Budget> list;
  for (const auto& [owner, budget] : budgets_) list.push_back(budget);
  return list;
}

}  // namespace gridctl::sim
