// SPDX-License-Identifier: Apache-2.0
#include "ui/json.hpp"

#include "base/formatted.hpp"
#include "base/text.hpp"
#include "ui/reliability.hpp"
#include "ui/use_view.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace gridctl::ui {

namespace {
using Json = nlohmann::ordered_json;

// Writes JSON. Foreign text may contain any bytes, which are replaced without an exception. Because people look at it
// on terminals, too, control and invisible characters are written as \uXXXX. The value is the same.
std::string dump(const Json& json) {
  return escape_deceptive(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json time_or_null(std::optional<WallTime> time) { return time ? Json(format_rfc3339(*time)) : Json(); }
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Returns the use of the member's host, or null if the attempt is not the running one, or nothing was measured.
Json use_value(const registry::JobUse* use, const job::Attempt* running, Epoch epoch, int rank) {
  if (use == nullptr || running == nullptr || use->epoch != epoch || running->epoch != epoch) return Json();
  const job::Member* member = running->member(rank);
  for (const registry::MemberUse& one : use->members)
    if (one.rank == rank && member != nullptr) return Json::parse(use_json(one, member->gpu_uuids));
  return Json();
}

Json attempt_value(const registry::Job& job, const registry::AttemptRecord& attempt, const registry::JobUse* use) {
  Json members = Json::array();
  for (const registry::MemberRecord& member : attempt.members)
    members.push_back(Json{{"rank", member.rank},
                           {"provider", member.provider.value},
                           {"state", member.state},
                           {"exit_code", or_null(member.exit_code)},
                           {"use", use_value(use, job.machine.attempt(), attempt.epoch, member.rank)}});
  return Json{
      {"number", attempt.number.value},
      {"epoch", attempt.epoch.value},
      {"provider", text_or_null(attempt.provider.value)},
      {"state", attempt.state},
      {"reason", text_or_null(attempt.reason)},
      {"started_at", time_or_null(attempt.started_at)},
      {"ended_at", time_or_null(attempt.ended_at)},
      {"resumed_from", attempt.resumed_from.value == 0 ? Json() : Json(checkpoint_name(job.id, attempt.resumed_from))},
      {"exit_code", or_null(attempt.exit_code)},
      {"placement_reason", text_or_null(attempt.placement_reason)},
      {"members", members}};
}

Json job_head(const registry::JobRow& job) {
  return Json{{"job_id", job.id.value},
              {"name", job.name},
              {"state", std::string(job::state_name(job.state))},
              {"reason", text_or_null(job.reason)},
              {"exit_code", or_null(job.exit_code)},
              {"submitted_at", format_rfc3339(job.submitted_at)},
              {"ended_at", time_or_null(job.ended_at)}};
}

Json provider_value(const registry::Provider& provider) {
  const sched::Reliability reliable = reliability(provider);
  Json gpus = Json::array();
  for (const Gpu& gpu : provider.inventory->gpus)
    gpus.push_back(Json{{"vendor", std::string(vendor_name(gpu.vendor))},
                        {"name", gpu.name},
                        {"memory_bytes", gpu.memory_bytes},
                        {"uuid", gpu.uuid}});
  return Json{{"name", provider.name.value},
              {"address", provider.address},
              {"state", provider.drained ? std::string("drained") : provider.liveness},
              {"engine", provider.engine},
              {"gpus", std::move(gpus)},
              {"cpus", provider.inventory->cpus},
              {"memory_bytes", provider.inventory->memory_bytes},
              {"price", provider.price_per_hour},
              {"region", text_or_null(provider.region)},
              {"reliability", reliable.up_share},
              {"last_seen", time_or_null(provider.last_seen_at)},
              {"until", time_or_null(provider.until)},
              {"mtbf_hours", reliable.mtbf_hours()},
              {"mtbf_low_hours", reliable.mtbf_low_hours()},
              {"mtbf_high_hours", reliable.mtbf_high_hours()},
              {"watched_hours", reliable.hours},
              {"failures", reliable.failures},
              {"bench", text_or_null(bench_verdict(provider))},
              {"class", provider.host_class},
              {"site", text_or_null(provider.site)},
              {"labels", Json(provider.labels)},
              {"disk_free_bytes", provider.inventory->disk_free_bytes},
              {"transport", text_or_null(provider.transport)},
              {"registered_at", format_rfc3339(provider.registered_at)}};
}

Json unit_value(const sched::UnitStanding& unit) {
  const bool ok = unit.state == sched::UnitState::ok;
  return Json{{"state", std::string(sched::unit_state_name(unit.state))},
              {"code", ok ? Json() : text_or_null(unit.code)},
              {"reason", ok ? Json() : text_or_null(unit.text)},
              {"since", ok ? Json() : Json(format_rfc3339(unit.since))},
              {"not_before", unit.state == sched::UnitState::quarantined ? Json(format_rfc3339(unit.until)) : Json()}};
}

// Returns the host's own standing, then that of each GPU that is not ok, and the users without a lease.
Json standing_value(const sched::HostStanding& standing) {
  const auto own = standing.units.find("");
  Json value = unit_value(own == standing.units.end() ? sched::UnitStanding{} : own->second);
  value["gpus"] = Json::array();
  for (const auto& [uuid, unit] : standing.units)
    if (!uuid.empty() && unit.state != sched::UnitState::ok) {
      Json one{{"uuid", uuid}};
      one.update(unit_value(unit));
      value["gpus"].push_back(std::move(one));
    }
  value["in_use"] = Json::array();
  for (const auto& [uuid, who] : standing.busy) value["in_use"].push_back(Json{{"uuid", uuid}, {"by", who}});
  return value;
}

Json checkpoint_value(const registry::Checkpoint& checkpoint) {
  return Json{{"checkpoint_id", checkpoint_name(checkpoint.job, checkpoint.seq)},
              {"job_id", checkpoint.job.value},
              {"attempt", checkpoint.attempt.value == 0 ? Json() : Json(checkpoint.attempt.value)},
              {"epoch", checkpoint.epoch.value},
              {"created_at", format_rfc3339(checkpoint.created_at)},
              {"bytes", checkpoint.bytes},
              {"stored_bytes", checkpoint.stored_bytes},
              {"files", checkpoint.files},
              {"verified", checkpoint.verified},
              {"pinned", checkpoint.pinned},
              {"stray", checkpoint.stray},
              {"provisional", checkpoint.provisional},
              {"as_left", checkpoint.as_left},
              {"suspect", checkpoint.suspect},
              {"how", text_or_null(checkpoint.how)},
              {"root", to_hex(checkpoint.root)},
              {"metrics", checkpoint.metrics},
              {"copies", checkpoint.copies}};
}

Json deadline_value(const std::optional<DeadlineTold>& deadline) {
  if (!deadline) return {};
  return Json{{"at", format_rfc3339(deadline->at)},
              {"hard", deadline->hard},
              {"expected_at", time_or_null(deadline->expected_at)},
              {"surely_at", time_or_null(deadline->surely_at)}};
}
}  // namespace

std::string submitted_json(const JobId& id, const std::string& name, job::JobState state) {
  return dump(Json{{"job_id", id.value}, {"name", name}, {"state", std::string(job::state_name(state))}});
}

std::string deadline_json(const std::optional<DeadlineTold>& deadline) { return dump(deadline_value(deadline)); }

namespace {
Json exactness_value(const std::optional<ExactnessTold>& told) {
  if (!told) return Json();
  const job::ExactnessVerdict& verdict = told->verdict;
  return Json{{"verdict", std::string(job::exactness_word(verdict.verdict))},
              {"attempt", told->attempt.value},
              {"number", text_or_null(verdict.number)},
              {"steps", verdict.steps},
              {"largest_difference", verdict.largest_difference},
              {"text", told->text}};
}
}  // namespace

std::string exactness_json(const std::optional<ExactnessTold>& told) { return dump(exactness_value(told)); }

std::string job_json(const registry::Job& job, std::span<const registry::AttemptRecord> attempts,
                     std::span<const registry::JobRow> twins, const std::optional<DeadlineTold>& deadline,
                     const Metrics& told, const std::optional<ExactnessTold>& exactness, const registry::JobUse* use) {
  Json value = job_head(job);
  Json list = Json::array();
  for (const registry::AttemptRecord& attempt : attempts) list.push_back(attempt_value(job, attempt, use));
  value["attempts"] = std::move(list);
  value["recoveries"] = job.recoveries;
  value["lost_seconds"] = seconds(job.machine.lost);
  value["cost"] = job.cost;
  const std::optional<job::Expected>& expected = job.machine.expected;
  value["expected"] = expected ? Json{{"seconds", expected->seconds}, {"cost", expected->usd}} : Json();
  value["metrics"] = told.empty() ? Json() : Json(told);
  const std::optional<job::Predicted>& predicted = job.spec.workload.predicted;
  value["predicted"] = predicted ? Json{{"layout", predicted->layout},
                                        {"gpu", predicted->gpu},
                                        {"gpus", predicted->gpus},
                                        {"step_seconds", predicted->step_s},
                                        {"tokens_per_second", predicted->tokens_per_s},
                                        {"peak_bytes", predicted->peak_bytes}}
                                 : Json();
  value["reason_text"] = text_or_null(job.machine.reason_text);
  const auto* launching = std::get_if<job::Launching>(&job.machine.phase);
  value["doing"] = launching == nullptr ? Json() : text_or_null(launching->doing);
  value["provider"] = text_or_null(job.provider.value);
  value["resources"] = text_or_null(job.resources);
  value["checkpoint"] = job.machine.head.value == 0 ? Json() : Json(checkpoint_name(job.id, job.machine.head));
  value["deadline"] = deadline_value(deadline);
  value["exactness"] = exactness_value(exactness);
  value["priority"] = job.spec.priority;
  value["owner"] = text_or_null(job.spec.owner);
  Json others = Json::array();
  for (const registry::JobRow& twin : twins) {
    Json one = job_head(twin);
    one["provider"] = text_or_null(twin.provider.value);
    others.push_back(std::move(one));
  }
  value["replicas"] = std::move(others);
  value["replica_of"] = text_or_null(job.spec.twin_of.value);
  return dump(value);
}

std::string jobs_json(std::span<const registry::JobRow> jobs) {
  Json list = Json::array();
  for (const registry::JobRow& job : jobs) {
    Json value = job_head(job);
    value["provider"] = text_or_null(job.provider.value);
    value["recoveries"] = job.recoveries;
    value["resources"] = text_or_null(job.resources);
    list.push_back(std::move(value));
  }
  return dump(list);
}

std::string event_json(const registry::EventRecord& event) {
  return dump(Json{{"id", event.id},
                   {"job_id", event.job.value},
                   {"at", format_rfc3339(event.at)},
                   {"kind", event.kind},
                   {"text", event.text},
                   {"epoch", event.epoch.value == 0 ? Json() : Json(event.epoch.value)},
                   {"attempt", event.attempt.value == 0 ? Json() : Json(event.attempt.value)},
                   {"provider", text_or_null(event.host.value)}});
}

std::string provider_json(const registry::Provider& provider) { return dump(provider_value(provider)); }

std::string provider_detail_json(const ProviderView& view) {
  const registry::Provider& provider = view.provider;
  Json value = provider_value(provider);
  value["uptime"] = or_null(figure(provider, "uptime"));
  value["start_seconds_p90"] = or_null(figure(provider, "start_time"));
  value["bench_drift"] = or_null(figure(provider, "bench_drift"));
  value["gpu_reliability"] = Json::array();
  for (const auto& [uuid, reliable] : view.gpus)
    value["gpu_reliability"].push_back(Json{{"uuid", uuid},
                                            {"mtbf_hours", reliable.mtbf_hours()},
                                            {"mtbf_low_hours", reliable.mtbf_low_hours()},
                                            {"mtbf_high_hours", reliable.mtbf_high_hours()},
                                            {"failures", reliable.failures}});
  value["standing"] = view.standing ? standing_value(*view.standing) : Json();
  value["identity"] = text_or_null(provider.peer_key);
  value["ways"] = Json::array();
  for (const registry::Way& way : provider.ways())
    value["ways"].push_back(Json{{"kind", std::string(way.kind())},
                                 {"address", way.address},
                                 {"jump", text_or_null(way.jump)},
                                 {"in_use", provider.more_ways.empty() || way.address == view.way_in_use}});
  value["declared_gpus"] = text_or_null(provider.declared_gpus);
  value["contradictions"] = view.contradictions;
  value["inventory"] = Json::parse(to_json(provider.inventory));
  for (Json& gpu : value["inventory"]["gpus"])
    if (const auto told = view.measured.find(gpu["uuid"].get<std::string>()); told != view.measured.end())
      gpu["measured"] = told->second;
  value["history"] = Json::array();
  for (const registry::HostEvent& event : view.history)
    value["history"].push_back(Json{{"at", format_rfc3339(event.at)}, {"kind", event.kind}, {"text", event.text}});
  return dump(value);
}

std::string providers_json(std::span<const registry::Provider> providers) {
  Json list = Json::array();
  for (const registry::Provider& provider : providers) list.push_back(provider_value(provider));
  return dump(list);
}

std::string checkpoint_json(const registry::Checkpoint& checkpoint) { return dump(checkpoint_value(checkpoint)); }

std::string checkpoints_json(std::span<const registry::Checkpoint> checkpoints) {
  Json list = Json::array();
  for (const registry::Checkpoint& checkpoint : checkpoints) list.push_back(checkpoint_value(checkpoint));
  return dump(list);
}

std::string error_json(const Error& error, int exit_code) {
  return dump(Json{{"type", "error"},
                   {"code", std::string(code_name(error.code))},
                   {"exit_code", exit_code},
                   {"message", error.message},
                   {"context", error.context},
                   {"hint", text_or_null(error.hint)},
                   {"retry", std::string(retry_name(error.retry))}});
}

std::string json_number(double value) { return std::isfinite(value) ? formatted("%.6g", value) : "null"; }

std::string quoted(std::string_view text) { return dump(Json(std::string(text))); }

}  // namespace gridctl::ui
