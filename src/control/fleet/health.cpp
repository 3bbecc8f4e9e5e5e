// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/health.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "control/reach/request.hpp"

namespace gridctl::control {
namespace {

constexpr Duration k_answer_slack = std::chrono::seconds{10};  // beyond what the host may wait itself
constexpr Duration k_check_wait = std::chrono::seconds{25};    // for every tool and engine there
constexpr std::string_view k_clock_sign = "clock";
constexpr std::string_view k_health_kind = "health", k_standing_kind = "standing";

std::string unit_text(const std::vector<std::string>& units) {
  if (units.size() == 1) return units.front().empty() ? "" : units.front() + ": ";
  return std::to_string(units.size()) + " GPUs: ";
}

std::string until_text(const sched::UnitStanding& unit, WallTime now) {
  if (unit.state == sched::UnitState::probation) return "on probation";
  const std::int64_t left = unit.until.ms - now.ms;
  return left > 0 ? "quarantined for at least " + format_duration(std::chrono::seconds{(left + 999) / 1000})
                  : std::string("quarantined until its checks pass");
}

}  // namespace

Result<wire::HealthReply> ask_health(wire::Link& link, os::Clock& clock, const wire::HealthRequest& request) {
  const BootTime deadline = clock.boot() + request.wait + k_answer_slack;
  TRY_ASSIGN(const std::string text, ask(link, k_health_stream, wire::encode(request), deadline));
  return wire::parse_health_reply(text);
}

std::optional<Unfit> unfit_to_start(wire::Link& link, os::Clock& clock, const Inventory& inventory,
                                    const std::vector<std::string>& gpu_uuids) {
  wire::HealthRequest request;
  request.gpus = !gpu_uuids.empty();
  request.max_age = request.gpus ? Duration::zero() : k_health_start_age_no_gpus;
  request.wait = request.gpus ? k_health_start_wait : k_health_start_wait_no_gpus;
  const auto reply = ask_health(link, clock, request);
  if (!reply || !reply->report) return std::nullopt;
  // The host did not finish a new report in time.
  if (reply->host_time - reply->report->taken_at > k_health_start_age_no_gpus) return std::nullopt;
  sched::HostStanding nothing_new;  // what happened is the controller's to judge; here counts what is
  nothing_new.boot_id = reply->report->boot_id;
  nothing_new.log_us = UINT64_MAX;
  nothing_new.file_system_errors = UINT64_MAX;
  HealthContext context;
  context.now = clock.wall();
  const sched::Look look = look_of(*reply->report, inventory, nothing_new, context);
  const auto concerns = [&](const std::string& unit) {
    return unit.empty() || std::find(gpu_uuids.begin(), gpu_uuids.end(), unit) != gpu_uuids.end();
  };
  for (const sched::Sign& sign : look.signs)
    if (sign.lasting && sign.weight >= sched::Weight::bad && concerns(sign.unit))
      return Unfit{"the host is not healthy: " + sanitize(sign.text), false};
  // A tool that hangs now would also hang under the job.
  for (const sched::Sign& sign : look.signs)
    if (sign.code == k_driver_hung && concerns(sign.unit)) return Unfit{sanitize(sign.text), false};
  for (const auto& [unit, who] : look.busy)
    if (concerns(unit)) return Unfit{"GPU " + unit + " is in use: " + sanitize(who), true};
  return std::nullopt;
}

Result<sched::HostStanding> load_standing(registry::HostRecords& registry, const HostName& name) {
  TRY_ASSIGN(const auto row, registry.host_report(name, std::string(k_standing_kind)));
  if (!row) return sched::HostStanding{};
  return sched::parse_standing(row->body).value_or(sched::HostStanding{});
}

Result<std::map<std::string, sched::HostStanding>> load_standings(registry::HostRecords& registry) {
  TRY_ASSIGN(const std::vector<registry::HostReport> rows, registry.host_reports(std::string(k_standing_kind)));
  std::map<std::string, sched::HostStanding> out;
  for (const registry::HostReport& row : rows)
    out[row.provider.value] = sched::parse_standing(row.body).value_or(sched::HostStanding{});
  return out;
}

Result<bool> was_looked_at(registry::HostRecords& registry, const HostName& name) {
  TRY_ASSIGN(const auto row, registry.host_report(name, std::string(k_standing_kind)));
  return row.has_value();
}

Result<void> save_health(registry::HostRecords& registry, const HostName& name, WallTime now,
                         const wire::HealthReport& report, const sched::HostStanding& standing) {
  TRY(registry.save_host_report({name, std::string(k_health_kind), now, wire::encode(report)}));
  return registry.save_host_report({name, std::string(k_standing_kind), now, sched::to_json(standing)});
}

Result<void> record_changes(registry::HostRecords& registry, const HostName& name, WallTime now,
                            const std::vector<sched::Change>& changes) {
  std::vector<std::pair<const sched::Change*, std::vector<std::string>>> groups;
  for (const sched::Change& change : changes) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.first->kind == change.kind && group.first->text == change.text &&
             group.first->unit.empty() == change.unit.empty();
    });
    if (same == groups.end()) groups.push_back({&change, {change.unit}});
    else same->second.push_back(change.unit);
  }
  for (const auto& [change, units] : groups)
    TRY(registry.add_host_event({0, name, now, change->kind, sanitize(unit_text(units) + change->text)}));
  for (const sched::Change& change : changes)
    if (sched::is_gpu_failure(change)) TRY(registry.save_host_span({name, change.unit, now, now, change.code}));
  return {};
}

std::string engine_sign(EngineKind kind) { return "engine_" + std::string(engine_name(kind)); }

void apply_standing(sched::HostFacts& facts, const sched::HostStanding& standing, WallTime now) {
  for (const auto& [unit, state] : standing.units) {
    if (state.state == sched::UnitState::ok) continue;
    const std::string why = until_text(state, now) + ": " + sanitize(state.text);
    if (state.state == sched::UnitState::probation) {
      facts.on_probation = true;
      continue;
    }
    if (unit.empty()) facts.quarantined = why;
    else facts.unhealthy_gpus[unit] = why;
  }
  for (Engine& engine : facts.inventory.edit().engines)
    if (engine.problem.empty() && standing.noted.contains(" " + engine_sign(engine.kind)))
      engine.problem = "it worked before, but not at the last check";
  for (const auto& [unit, who] : standing.busy) {
    if (std::find(facts.busy_gpus.begin(), facts.busy_gpus.end(), unit) == facts.busy_gpus.end())
      facts.busy_gpus.push_back(unit);
  }
}

Result<std::vector<std::pair<std::string, std::string>>> health_lines(registry::HostRecords& registry,
                                                                      const HostName& name, WallTime now) {
  std::vector<std::pair<std::string, std::string>> lines;
  TRY_ASSIGN(const auto row, registry.host_report(name, std::string(k_health_kind)));
  if (!row) return lines;
  TRY_ASSIGN(const sched::HostStanding standing, load_standing(registry, name));
  const auto host = standing.units.find("");
  const bool well = host == standing.units.end() || host->second.state == sched::UnitState::ok;
  lines.emplace_back("standing", well ? "ok" : until_text(host->second, now) + ": " + host->second.text);
  for (const auto& [unit, state] : standing.units)
    if (!unit.empty() && state.state != sched::UnitState::ok)
      lines.emplace_back("standing", unit + " is " + until_text(state, now) + ": " + state.text);
  for (const auto& [unit, who] : standing.busy) lines.emplace_back("in use", unit + ": " + who);
  const auto report = wire::parse_health_report(row->body);
  if (!report) return lines;
  std::string text = "seen " +
                     format_duration(std::chrono::seconds{std::max<std::int64_t>(0, now.ms - row->at.ms) / 1000}) +
                     " ago; load " + std::to_string(static_cast<int>(report->load1 + 0.5)) + " on " +
                     std::to_string(static_cast<int>(report->cpus)) + " CPUs";
  if (report->busy_cpus) {
    const double others = std::max(0.0, *report->busy_cpus - report->leased_cpus);
    text += ", at least " + std::to_string(static_cast<int>(others + 0.5)) + " of them used by others";
  }
  lines.emplace_back("health", text);
  if (!report->log_gap.empty()) lines.emplace_back("kernel log", "not readable: " + report->log_gap);
  for (const wire::KernelEvent& event : report->events) lines.emplace_back("kernel log", event.text);
  return lines;
}

Result<SeenHealth> see_health(AgentNetwork& net, const registry::Provider& provider, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const transfer::BulkLink bulk, net.open(provider, deadline));
  wire::HealthRequest request;
  request.wait = std::min<Duration>(k_check_wait, std::max(Duration::zero(), deadline - clock.boot() - k_answer_slack));
  request.gpus = request.packages = true;
  TRY_ASSIGN(wire::HealthReply reply, ask_health(*bulk.link, clock, request));
  const WallTime now = clock.wall();
  if (!reply.report) return make_error(Code::timed_out, "the host did not deliver a health report in time");
  return SeenHealth{std::move(*reply.report), reply.wall_ms - now.ms};
}

Result<CheckedHealth> check_health(registry::HostRecords& registry, AgentNetwork& net,
                                   const registry::Provider& provider, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(SeenHealth seen, see_health(net, provider, deadline, clock));
  TRY_ASSIGN(const sched::HostStanding before, load_standing(registry, provider.name));
  HealthContext context;
  context.now = clock.wall();
  // Our clock against one host's proves nothing against either: a conclusion from several hosts stands in that case.
  const auto host = before.units.find("");
  if (host != before.units.end() && host->second.code == k_clock_sign) context.clock_offset_ms = seen.clock_offset_ms;
  sched::Judgement verdict = sched::judge_checked(before, look_of(seen.report, provider.inventory, before, context));
  TRY(record_changes(registry, provider.name, context.now, verdict.changes));
  TRY(save_health(registry, provider.name, context.now, seen.report, verdict.next));
  return CheckedHealth{std::move(seen.report), seen.clock_offset_ms, std::move(verdict.next),
                       std::move(verdict.changes)};
}

}  // namespace gridctl::control
