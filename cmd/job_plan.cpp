// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_plan.hpp"

#include "ui/json.hpp"

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

std::string member_json(bool first, const sched::Placement& member) {
  std::string gpus;
  for (const std::string& uuid : member.gpu_uuids) gpus += (gpus.empty() ? "" : ",") + ui::quoted(uuid);
  return std::string(first ? "" : ",") + "{\"provider\":" + ui::quoted(member.host.value) +
         ",\"engine\":" + ui::quoted(engine_name(member.engine)) + ",\"gpus\":[" + gpus +
         "],\"price\":" + ui::json_number(member.price_per_hour) + "}";
}

std::string estimate_json(const sched::Estimate& estimate) {
  if (estimate.is_never()) return "null";
  const auto hours = [](double seconds) { return ui::json_number(seconds / 3600); };
  return "{\"hours\":" + hours(estimate.takes()) + ",\"cost\":" + ui::json_number(estimate.cost()) +
         ",\"work_hours\":" + hours(estimate.work) + ",\"checkpoint_hours\":" + hours(estimate.saving) +
         ",\"lost_hours\":" + hours(estimate.lost) + ",\"recovery_hours\":" + hours(estimate.recovery) +
         ",\"transfer_hours\":" + hours(estimate.transfer) + ",\"start_hours\":" + hours(estimate.start) + "}";
}

std::string outline_json(const sched::Outline& outline) {
  const sched::Coupling& coupling = outline.coupling;
  std::string notes;
  for (const std::string& note : outline.notes) notes += (notes.empty() ? "" : ",") + ui::quoted(note);
  return "{\"class\":" + ui::quoted(job::class_name(coupling.job_class)) + ",\"what\":" + ui::quoted(coupling.what) +
         ",\"why\":" + ui::quoted(coupling.why) + ",\"needs\":" + ui::quoted(coupling.needs) +
         ",\"mixed_vendors\":" + (coupling.mixed_vendors ? "true" : "false") +
         ",\"backend\":" + ui::quoted(job::backend_name(outline.backend.backend)) +
         ",\"backend_why\":" + ui::quoted(outline.backend.why) + ",\"strategy\":" + ui::quoted(coupling.strategy) +
         ",\"notes\":[" + notes +
         "],\"list_price\":" + (outline.list_price.empty() ? "null" : ui::quoted(outline.list_price)) + "}";
}

Error impossible_error(const std::string& job_name, const sched::Impossible& no) {
  Error error = make_error(Code::no_provider_fits, "no provider can run '" + job_name + "': " + no.why);
  error.retry = Retry::needs_user;  // waiting cures nothing
  for (const std::string& other : no.instead) error.context.push_back("would work: " + other);
  return error;
}

}  // namespace gridctl::cmd
