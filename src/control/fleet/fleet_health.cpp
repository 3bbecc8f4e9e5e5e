// SPDX-License-Identifier: Apache-2.0
// Looks at every host's health, on the connection of its heartbeat.
#include <algorithm>

#include "base/text.hpp"
#include "control/fleet/fleet.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_health_again = std::chrono::seconds{5};   // a report is being made: come for it
constexpr int k_health_tries = 4;                              // then it is looked for at the next time only
constexpr Duration k_health_busy = std::chrono::seconds{5};    // a GPU that others use may be free again at any time
constexpr Duration k_health_saved = std::chrono::minutes{10};  // what did not change is written no more often
constexpr std::int64_t k_ms = 1'000'000;

// A standing is worth writing only if these fields change; counters that move with each look do not matter.
bool same_in_substance(const sched::HostStanding& a, const sched::HostStanding& b) {
  if (a.busy != b.busy || a.boot_id != b.boot_id || a.units.size() != b.units.size()) return false;
  return std::equal(a.units.begin(), a.units.end(), b.units.begin(), [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.state == other.second.state && one.second.text == other.second.text;
  });
}

bool one_is_free_again(const sched::HostStanding& before, const sched::HostStanding& now) {
  return std::ranges::any_of(before.busy, [&](const auto& used) { return !now.busy.contains(used.first); });
}

bool is_gone(const sched::UnitStanding& unit) {
  return unit.state == sched::UnitState::quarantined &&
         is_one_of(unit.code, {k_gpu_gone, "xid-79", "gpu_lost"});
}

}  // namespace

// Adopts the judgements of other processes: `provider check` lifts a quarantine.
void Fleet::load_standings() {
  const Result<std::vector<registry::HostReport>> rows = world_.records.host_reports("standing");
  if (!rows) return report(rows.error(), "while reading the standing of hosts");
  for (const registry::HostReport& row : *rows) {
    const auto found = hosts_.find(row.provider.value);
    if (found == hosts_.end() || row.at <= found->second->health.saved_at) continue;
    const Result<sched::HostStanding> standing = sched::parse_standing(row.body);
    if (!standing) continue;
    found->second->health.standing = *standing;
    found->second->health.saved_at = row.at;
    reliability_.gpus_judged(row.provider);
  }
}

void Fleet::sweep_health(BootTime now) {
  if (health_every_ <= Duration::zero()) return;
  for (auto& [name, host] : hosts_) {
    HostHealth& health = host->health;
    const std::set<std::string>& leased = host->use.gpus;
    // A released GPU is checked at once, not at the next regular time.
    for (const std::string& gpu : health.leased)
      if (!leased.contains(gpu) && health.vacated.insert(gpu).second) health.next = now;
    health.leased = leased;
    if (!host->monitor->is_up()) {
      health.next = now;  // the first thing after it has come back
      continue;
    }
    if (now < health.next) continue;
    const bool busy = !health.standing.busy.empty();
    const Duration every = busy ? std::min(health_every_, k_health_busy) : health_every_;
    wire::HealthRequest request;
    request.gpus = busy;  // also beside jobs of ours: they may be on other GPUs, or on none
    request.max_age = health.tries > 0 ? every : every * 3 / 4;
    request.known = health.known;
    if (!host->monitor->request_health(request)) continue;
    health.next = now + every;
  }
}

// Returns unknown while hosts that could show whose clock is wrong, this host's or ours, are reachable but have not
// answered yet.
std::optional<std::int64_t> Fleet::clock_offset_of(const FleetHost& host, WallTime now) const {
  const bool alone = std::none_of(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
    return entry.second.get() != &host && clocks_.knows(entry.first);
  });
  const bool others_to_come = std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
    return entry.second.get() != &host && (entry.second->monitor->is_up() || !entry.second->monitor->was_tried());
  });
  if (alone && others_to_come) return std::nullopt;
  return clocks_.offset(host.provider.name.value, now, world_.clock.boot());
}

void Fleet::on_health(FleetHost& host, const wire::HealthReply& reply, Duration took) {
  HostHealth& health = host.health;
  const WallTime now = world_.clock.wall();
  // The host wrote its time somewhere between request and answer; only a difference beyond that interval is certain.
  const std::int64_t ahead = reply.wall_ms - now.ms;
  clocks_.heard(host.provider.name.value, ahead > 0 ? ahead : std::min<std::int64_t>(0, ahead + took.count() / k_ms),
                now, world_.clock.boot());
  if (reply.under_way && ++health.tries < k_health_tries)
    health.next = std::min(health.next, world_.clock.boot() + k_health_again);
  if (!reply.under_way) health.tries = 0;
  if (!reply.report) return;
  health.known = reply.report->taken_at;

  HealthContext context;
  context.now = now;
  context.age_ms = std::max<std::int64_t>(0, (reply.host_time - reply.report->taken_at).count() / k_ms);
  context.clock_offset_ms = clock_offset_of(host, now);
  context.vacated = health.vacated;
  const sched::Look look = look_of(*reply.report, host.provider.inventory, health.standing, context);
  sched::Judgement verdict = sched::judge(health.standing, look);
  if (reply.report->gpus_fresh() && !reply.under_way) health.vacated.clear();
  if (one_is_free_again(health.standing, verdict.next)) capacity_freed();  // jobs that wait are asked in their order
  keep_health(host, *reply.report, std::move(verdict), now);
  if (!health.standing.busy.empty()) health.next = std::min(health.next, world_.clock.boot() + k_health_busy);
  for (const auto& [unit, standing] : host.health.standing.units)
    if (!unit.empty() && is_gone(standing))
      tell([&](FleetListener& one) { one.gpu_lost(host, unit, standing.text); });
}

void Fleet::keep_health(FleetHost& host, const wire::HealthReport& told, sched::Judgement verdict, WallTime now) {
  HostHealth& health = host.health;
  const bool news = !verdict.changes.empty() || !same_in_substance(health.standing, verdict.next);
  const bool due = now - health.saved_at > k_health_saved || now < health.saved_at;
  if (!news) {
    health.standing = std::move(verdict.next);
    if (due) health.unsaved = told;
    return;
  }
  health.unsaved.reset();
  // Another process may have judged since the last look: its judgement stands, and ours is redone next time.
  const Result<std::optional<registry::HostReport>> row = world_.records.host_report(host.provider.name, "standing");
  if (!row) return report(row.error(), "while reading a host's standing");
  if (*row && (*row)->at > health.saved_at && (*row)->at <= now) return load_standings();
  Result<void> kept = record_changes(world_.records, host.provider.name, now, verdict.changes);
  if (kept) kept = save_health(world_.records, host.provider.name, now, told, verdict.next);
  if (!kept) return report(kept.error(), "while recording a host's health");
  for (const sched::Change& change : verdict.changes)
    os::log(os::LogLevel::info, host.provider.name.value + ": " + change.kind + ": " + change.text);
  health.standing = std::move(verdict.next);
  health.saved_at = now;
  if (std::any_of(verdict.changes.begin(), verdict.changes.end(), sched::is_gpu_failure))
    reliability_.gpus_judged(host.provider.name);
  tell([&](FleetListener& one) { one.health_changed(host, verdict.changes); });
}

Result<void> Fleet::save_health_of(FleetHost& host) {
  HostHealth& health = host.health;
  const wire::HealthReport& told = *health.unsaved;
  const WallTime now = world_.clock.wall();
  TRY_ASSIGN(const auto row, world_.records.host_report(host.provider.name, "standing"));
  if (row && row->at > health.saved_at && row->at <= now)
    return {};  // judged by somebody else: adopted, then told anew
  TRY(save_health(world_.records, host.provider.name, now, told, health.standing));
  health.saved_at = now;
  return {};
}

}  // namespace gridctl::control
