// SPDX-License-Identifier: Apache-2.0

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/deadline_view.hpp"
#include "cmd/follow.hpp"
#include "cmd/job_plan.hpp"
#include "cmd/outcome.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/recovery_view.hpp"
#include "control/copies/remotes.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/follow/gang_backend.hpp"
#include "control/follow/job_knowledge.hpp"
#include "sched/place.hpp"

namespace gridctl::cmd {

namespace job_explain {
namespace {
// Returns the scheduler's present decision for a job that was not looked at yet.
Result<std::vector<std::string>> prospects(registry::JobRecords& registry, const registry::Job& job,
                                           const std::vector<sched::HostFacts>& hosts, WallTime now) {
  TRY_ASSIGN(const sched::JobKnowledge known, control::knowledge_of(registry, job, hosts, now));
  const sched::Decision decision = sched::place(job.spec, hosts, job.machine.avoided, known);
  std::vector<std::string> lines = sched::explain(decision);
  lines.insert(lines.begin(), "not decided yet; from what gridctl knows now:");
  return lines;
}

// The interval is tuned again while the job runs: the newest one counts, not the one assumed at the start.
Result<void> put_newest_interval(registry::JobRecords& registry, const JobId& id, std::vector<std::string>& lines) {
  TRY_ASSIGN(const std::vector<registry::EventRecord> events, registry.events(id, 0, 0));
  const auto newest = std::find_if(events.rbegin(), events.rend(), [](const registry::EventRecord& event) {
    return event.kind == "interval_tuned" || event.kind == "placed";
  });
  if (newest == events.rend() || newest->kind == "placed") return {};
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("suggested checkpoint interval: ") || line.starts_with("checkpoints every ");  // the latter: of an earlier gridctl
  });
  lines.push_back(newest->text);
  return {};
}

// Adds who makes room for a job that waits: its history says so, and the scheduler's decision does not.
Result<void> add_preempting(registry::JobRecords& registry, const registry::Job& job, std::vector<std::string>& lines) {
  if (!std::holds_alternative<job::Waiting>(job.machine.phase)) return {};
  TRY_ASSIGN(const std::vector<registry::EventRecord> events, registry.events(job.id, 0, 0));
  const auto newest = std::find_if(events.rbegin(), events.rend(), [](const registry::EventRecord& event) {
    return event.kind == "preempting" || event.kind == "placed";
  });
  if (newest != events.rend() && newest->kind == "preempting")
    lines.push_back("decided at " + format_rfc3339(newest->at) + ": " + newest->text);
  return {};
}

Result<sched::Outline> outline_of(registry::HostRecords& registry, const registry::Job& job,
                                  const std::vector<sched::HostFacts>& hosts) {
  std::vector<sched::PairLink> links;
  if (job.spec.num_nodes > 1) {
    TRY_ASSIGN(links, control::pair_links(registry));
  }
  return sched::outline(job.spec, chosen_of(job, hosts), hosts, links);
}

// Adds remotes to which copies of its checkpoints must not go.
Result<void> add_refusals(registry::Registry& registry, const job::Spec& spec, std::vector<std::string>& lines) {
  registry::CopyWanted wanted;
  wanted.constraints = spec.constraints;
  if (spec.checkpoint.copies <= 1) return {};
  TRY_ASSIGN(const std::vector<control::RemoteOffer> offers, control::remote_offers(registry));
  for (const control::RemoteOffer& offer : offers)
    if (const std::string why = control::copy_refusal(wanted, offer); !why.empty())
      lines.push_back("copies of its checkpoints are not sent to " + offer.name + ": " + why);
  return {};
}

// Adds, for a running gang, its library and the network settings of its members.
Result<void> add_backend(registry::HostRecords& registry, const registry::Job& job, std::vector<std::string>& lines) {
  const job::Attempt* attempt = job.machine.attempt();
  if (attempt == nullptr || !attempt->is_gang()) return {};
  std::vector<registry::Provider> hosts;
  for (const job::Member& member : attempt->members) {
    const Result<registry::Provider> host = registry.provider(member.host);
    if (!host) return {};
    hosts.push_back(*host);
  }
  for (std::string& line : control::explain_backend(job.spec, *attempt, hosts)) lines.push_back(std::move(line));
  return {};
}

std::string json_of(const registry::Job& job, const std::vector<std::string>& lines, const sched::Outline& outline) {
  JsonObject json;
  json("job_id", job.id.value)("state", job::state_name(job.state))("reason", job.reason);
  json("reason_text", job.machine.reason_text).raw("lines", json_list(lines));
  return json.raw("plan", outline_json(outline)).text();
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY(warn_unfollowed(context, registry));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY_ASSIGN(std::vector<std::string> lines, registry.explanation(job.id));  // what was decided last
  const bool goes_on = !job::is_final(job.state), undecided = goes_on && lines.empty();
  const bool compares = undecided || (goes_on && job.spec.deadline) || job.spec.num_nodes > 1;
  TRY_ASSIGN(const std::vector<sched::HostFacts> hosts,
             compares ? all_host_facts(registry, context.now()) : member_facts(registry, job));
  if (undecided) {
    TRY_ASSIGN(lines, prospects(registry, job, hosts, context.now()));
  }
  TRY(put_newest_interval(registry, id, lines));
  TRY(add_preempting(registry, job, lines));
  put_newest_tolerance(job, lines);
  TRY_ASSIGN(const std::optional<DeadlineView> deadline, deadline_view(registry, job, hosts, context.now()));
  if (deadline) lines.insert(lines.begin(), "deadline: " + deadline->text);
  TRY(add_refusals(registry, job.spec, lines));
  TRY(add_backend(registry, job, lines));
  TRY_ASSIGN(const sched::Outline outline, outline_of(registry, job, hosts));
  if (context.json) return context.print_line(json_of(job, lines, outline));
  std::string head = job.name + " (" + job.id.value + ") is " + std::string(job::state_name(job.state));
  const std::string why = why_of(job);
  if (!why.empty()) head += ": " + why;
  context.print_line(sanitize(head));
  for (const std::string& line : sched::explain(outline)) context.print_line("  " + sanitize(line));
  for (const std::string& line : lines) context.print_line("  " + sanitize(line));
  if (const auto* waiting = std::get_if<job::Waiting>(&job.machine.phase);
      waiting != nullptr && waiting->until && *waiting->until > context.now())
    context.print_line("  the next attempt starts at " + format_rfc3339(*waiting->until) +
                       " at the earliest: the wait grows with each failure");
  for (const job::Avoided& avoided : job.machine.avoided)
    context.print_line("  stays away from " + avoided.host.value + ": " + sanitize(avoided.reason));
  return 0;
}
}  // namespace
}  // namespace job_explain

const Command k_job_explain{
    .name = "job explain",
    .summary = "explain why a job runs where it does, or why it waits",
    .examples = {{"Why is the job still pending?", "gridctl job explain train-gpt"},
                 {"Why does the job run on this host?", "gridctl job explain @last"}},
    .description =
        "Prints the reason for the job's state, its class with the evidence, its communication library and strategy, "
        "and the scheduler's last decision: why this provider, and why not each of the others.",
    .positionals = {{"ID", Completion::job}},
    .exit_codes = k_exits_job,
    .run = job_explain::run};

}  // namespace gridctl::cmd
