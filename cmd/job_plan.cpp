// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_plan.hpp"

#include "cmd/context.hpp"

namespace gridctl::cmd {

namespace {
void add_chosen(std::vector<sched::Chosen>& into, const std::vector<sched::HostFacts>& hosts, const HostName& name,
                const std::vector<std::string>& gpu_uuids) {
  for (const sched::HostFacts& host : hosts)
    if (host.name == name) into.push_back({&host, gpu_uuids});
}
}  // namespace

std::vector<sched::Chosen> chosen_of(const sched::Decision& decision, const std::vector<sched::HostFacts>& hosts) {
  std::vector<sched::Chosen> chosen;
  if (decision.placement) add_chosen(chosen, hosts, decision.placement->host, decision.placement->gpu_uuids);
  return chosen;
}

std::vector<sched::Chosen> chosen_of(const sched::GangDecision& decision, const std::vector<sched::HostFacts>& hosts) {
  std::vector<sched::Chosen> chosen;
  if (decision.plan)
    for (const sched::Placement& member : decision.plan->members)
      add_chosen(chosen, hosts, member.host, member.gpu_uuids);
  return chosen;
}

std::vector<sched::Chosen> chosen_of(const registry::Job& job, const std::vector<sched::HostFacts>& hosts) {
  std::vector<sched::Chosen> chosen;
  if (const job::Attempt* attempt = job.machine.attempt())
    for (const job::Member& member : attempt->members) add_chosen(chosen, hosts, member.host, member.gpu_uuids);
  return chosen;
}

std::string members_json(std::span<const sched::Placement> members) {
  return json_list(members, [](const sched::Placement& member) {
    JsonObject json;
    json("provider", member.host.value)("engine", engine_name(member.engine));
    return json.raw("gpus", json_list(member.gpu_uuids))("price", member.price_per_hour).text();
  });
}

std::string estimate_json(const sched::Estimate& estimate) {
  if (estimate.is_never()) return "null";
  JsonObject json;
  json("hours", estimate.takes() / 3600)("cost", estimate.cost())("work_hours", estimate.work / 3600);
  json("checkpoint_hours", estimate.saving / 3600)("lost_hours", estimate.lost / 3600);
  json("recovery_hours", estimate.recovery / 3600)("transfer_hours", estimate.transfer / 3600);
  return json("start_hours", estimate.start / 3600).text();
}

std::string outline_json(const sched::Outline& outline) {
  const sched::Coupling& coupling = outline.coupling;
  JsonObject json;
  json("class", job::class_name(coupling.job_class))("what", coupling.what)("why", coupling.why);
  json("needs", coupling.needs)("mixed_vendors", coupling.mixed_vendors);
  json("backend", job::backend_name(outline.backend.backend))("backend_why", outline.backend.why);
  json("strategy", coupling.strategy).raw("notes", json_list(outline.notes));
  return json.text_or_null("list_price", outline.list_price).text();
}

Error impossible_error(const std::string& job_name, const sched::Impossible& no) {
  Error error = make_error(Code::no_provider_fits, "no provider can run '" + job_name + "': " + no.why);
  error.retry = Retry::needs_user;  // waiting cures nothing
  for (const std::string& other : no.instead) error.context.push_back("would work: " + other);
  return error;
}

}  // namespace gridctl::cmd
