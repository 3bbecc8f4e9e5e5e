// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/deadline_view.hpp"
#include "cmd/follow.hpp"
#include "cmd/outcome.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/submission.hpp"
#include "control/daemon/daemon.hpp"
#include "control/daemon/user_settings.hpp"
#include "control/follow/bag_files.hpp"
#include "job/last_step.hpp"
#include "sched/place.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_rerun {
namespace {
Result<Submission> again(Context& context, registry::Registry& registry, const registry::Job& job, const Parsed& parsed) {
  Submission next{job::without_last_step(job.spec), {}, {}};
  if (parsed.has("name")) next.spec.name = parsed.value("name");
  if (parsed.has("provider")) next.spec.constraints.providers = parsed.values("provider");
  TRY(check_supported(registry, next.spec));
  TRY(check_deadline(next.spec, context.now()));
  TRY_ASSIGN(const std::vector<sched::HostFacts> hosts, all_host_facts(registry, context.now()));
  job::Spec member = next.spec;
  member.num_nodes = 1;
  const sched::Decision decision = sched::place(member, hosts, {});
  if (!decision.could_ever_fit) return nothing_fits(next.spec.name, decision);
  TRY_ASSIGN(next.secrets, secrets_of(context.paths(), job, "gridctl job rerun " + job.id.value));
  TRY_ASSIGN(next.inputs, registry.inputs(job.id));
  std::erase_if(next.inputs, [](const registry::Input& one) { return one.role == job::k_tasks_role; });
  if (job.spec.tasks) {
    TRY_ASSIGN(next.items, control::read_bag_items(context.paths().bag_of(job.id)));
  }
  next.origin = read_origin(context.paths(), job.id);
  TRY_ASSIGN(next.notify, control::read_notify_rules(context.paths(), job.id));
  return next;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId former, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(former));
  if (!job.spec.twin_of.value.empty())
    return make_error(Code::usage, "job " + former.value + " is part of job " + job.spec.twin_of.value,
                      "gridctl job rerun " + job.spec.twin_of.value);
  TRY_ASSIGN(const Submission next, again(context, registry, job, parsed));
  TRY_ASSIGN(const JobId id, record(context, registry, next));
  TRY(control::ensure_daemon(context.state, true).context("the job is recorded as " + id.value));
  if (!parsed.has("wait")) {
    context.print_line(context.json ? ui::submitted_json(id, next.spec.name, job::JobState::pending)
                                    : next.spec.name + " " + id.value);
    return context.note("follow it: gridctl job watch " + id.value);
  }
  TRY_ASSIGN(const registry::Job after, watch(context, registry, id, {.logs = !context.json, .quiet = context.json}));
  if (context.json) context.print_line(outcome_json(after));
  return outcome_of(after);
}
}  // namespace
}  // namespace job_rerun

const Command k_job_rerun{
    .name = "job rerun",
    .summary = "submit a job again as a new job",
    .examples = {{"Run the same files again as a new job", "gridctl job rerun train-gpt"},
                 {"Under another name, and follow it", "gridctl job rerun train-gpt -n train-again --wait"}},
    .description =
        "Submits the same job with the files stored at its first submission, as a new job that starts from the "
        "beginning. The earlier job may still run or have ended; it stays as it is. 'gridctl job resume' continues a "
        "job from its checkpoints instead. Secrets that are no longer kept are read from the environment.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"name", 'n', "NAME", "name of the new job", "the earlier job's"},
                {"provider", 'p', "NAME", "run only on this host", "", Completion::provider, "", true},
                {"wait", 0, "", "follow the job until it ends"}},
    .exit_codes = {1, 3, 4, 5, 7, 9, 130},
    .waits = true,
    .run = job_rerun::run};

}  // namespace gridctl::cmd
