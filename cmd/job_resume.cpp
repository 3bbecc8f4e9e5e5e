// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "cmd/bag_view.hpp"
#include "cmd/commands.hpp"
#include "cmd/pausing.hpp"
#include "cmd/deadline_view.hpp"
#include "cmd/follow.hpp"
#include "cmd/outcome.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/submission.hpp"
#include "config/fields.hpp"
#include "config/job_file.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/budgets.hpp"
#include "control/follow/limits.hpp"
#include "control/follow/secrets.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_resume {
namespace {
Result<std::optional<CheckpointSeq>> wanted_checkpoint(registry::JobRecords& registry, const JobId& id,
                                                       const Parsed& parsed) {
  if (!parsed.has("from")) return std::optional<CheckpointSeq>{};
  std::string text = parsed.value("from");
  if (text.find('@') == std::string::npos) text = id.value + "@" + text;
  TRY_ASSIGN(const registry::CheckpointName name, registry::parse_checkpoint_name(text));
  TRY_ASSIGN(const JobId owner, registry.resolve(name.job));
  if (owner != id)
    return make_error(Code::usage, "checkpoint " + text + " belongs to another job",
                      "gridctl checkpoint pull " + text + " DIR && gridctl checkpoint push " + id.value + " DIR");
  TRY_ASSIGN(const registry::Checkpoint checkpoint, registry.checkpoint(id, name.seq));
  if (!checkpoint.verified)
    return make_error(Code::checkpoint_damaged, "checkpoint " + checkpoint_name(id, checkpoint.seq) + " is damaged",
                      "gridctl checkpoint ls " + id.value);
  return std::optional{checkpoint.seq};
}

Result<void> change_deadline(const std::string& text, WallTime now, job::Spec& spec) {
  const auto parsed = config::parse_deadline(text);
  if (!parsed)
    return make_error(Code::usage,
                      "--deadline: expected " + parsed.error().message + ", got '" + config::excerpt(text) + "'");
  const bool hard = spec.deadline && spec.deadline->hard;
  spec.deadline = job::Deadline{job::moment_of(*parsed, now), {}, hard};
  return check_deadline(spec, now);
}

Result<void> change_trust(const Parsed& parsed, job::Spec& spec) {
  const auto choose = [&](const std::string& option, const std::string& no, const std::string& yes,
                          const std::function<void(bool)>& set) -> Result<void> {
    if (!parsed.has(option)) return {};
    const std::string word = parsed.value(option);
    if (word != no && word != yes)
      return make_error(Code::usage, "--" + option + ": expected " + no + " or " + yes + ", got '" + config::excerpt(word) + "'");
    set(word == yes);
    return {};
  };
  TRY(choose("restore-from", "any", "trusted", [&](bool trusted) {
    spec.recovery.restore_from = trusted ? job::RestoreFrom::trusted : job::RestoreFrom::any;
  }));
  TRY(choose("traffic", "protected", "clear", [&](bool clear) { spec.constraints.clear_traffic = clear; }));
  TRY(choose("unmeasured", "refuse", "allow", [&](bool allow) { spec.constraints.unmeasured = allow; }));
  TRY(choose("unproven", "refuse", "allow", [&](bool allow) { spec.constraints.unproven = allow; }));
  return choose("images", "digests", "tags", [&](bool tags) { spec.constraints.image_tags = tags; });
}

Result<void> change_limits(const Parsed& parsed, WallTime now, job::Spec& spec) {
  if (parsed.has("budget")) {
    const auto usd = config::parse_decimal(parsed.value("budget"), config::k_budget_limits);
    if (!usd) return make_error(Code::usage, "--budget: " + usd.error().message);
    spec.budget_total = *usd;
  }
  if (parsed.has("max-duration")) {
    const auto most = parse_duration(parsed.value("max-duration"));
    if (!most || *most <= Duration::zero())
      return make_error(Code::usage, "--max-duration: expected a duration such as 12h, got '" +
                                         config::excerpt(parsed.value("max-duration")) + "'");
    spec.max_duration = *most;
  }
  if (parsed.has("deadline")) TRY(change_deadline(parsed.value("deadline"), now, spec));
  return {};
}

// A job stopped by its own limit would be stopped again at once.
Result<void> check_limits(registry::JobRecords& registry, const registry::Job& job, const job::Spec& spec, WallTime now) {
  TRY_ASSIGN(const registry::Spent spent, registry.spent(job.id, job.ended_at.value_or(now)));
  job::State next = job.machine;
  next.phase = job::Waiting{};
  next.cancel.reset();
  const auto reached = control::judge_limits(next, control::limits_of(spec, job.submitted_at), spent, now);
  const std::string& former = job.machine.limit;  // what is left of it is for saving, not for another start
  const bool same = (former == "budget" && spec.budget_total == job.spec.budget_total) ||
                    (former == "max_duration" && spec.max_duration == job.spec.max_duration);
  if (!reached && !same) return {};
  return make_error(
      Code::cancelled,
      "job " + job.name + " (" + job.id.value + "): " + (reached ? reached->text : job.machine.limit_text),
      resume_with_more(job.id, reached ? reached->limit : former));
}

// Checks the month's budget if the job was stopped for it: the next month may have begun.
Result<void> check_month(registry::JobRecords& registry, const registry::Job& job, WallTime now) {
  if (job.machine.limit != control::k_limit_month) return {};
  TRY_ASSIGN(const std::vector<control::BudgetNow> budgets, control::budgets_now(registry, now));
  const control::BudgetNow* used_up = control::used_up_for(budgets, job.spec.owner);
  if (used_up == nullptr) return {};
  return make_error(Code::cancelled, "job " + job.name + " (" + job.id.value + "): " + control::used_up_text(*used_up),
                    resume_with_more(job.id, job.machine.limit));
}

Result<job::Spec> check_fit(registry::Registry& registry, const registry::Job& job, const Parsed& parsed,
                            WallTime now) {
  job::Spec spec = job.spec;
  for (const std::string& name : parsed.values("provider")) TRY(registry.provider(HostName{name}));
  if (parsed.has("provider")) spec.constraints.providers = parsed.values("provider");
  TRY(change_trust(parsed, spec));
  TRY(change_limits(parsed, now, spec));
  TRY(check_limits(registry, job, spec, now));
  TRY(check_month(registry, job, now));
  TRY_ASSIGN(const std::vector<sched::HostFacts> hosts, all_host_facts(registry, now));
  const sched::Decision decision = sched::place(spec, hosts, {});
  if (!decision.could_ever_fit) return nothing_fits(spec.name, decision);
  return spec;
}

// A paused job continues where it is.
Result<int> resume_here(Context& context, registry::Registry& registry, const registry::Job& job) {
  TRY_ASSIGN(const std::string done, pause_in_place(context, registry, job, {.resume = true}));
  return context.print_line(context.json ? ui::submitted_json(job.id, job.name, job.state)
                                         : job.name + " (" + job.id.value + ") " + done);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  if (!job::is_final(job.state)) {
    TRY_ASSIGN(const bool paused, is_paused(registry, job));
    if (paused) return resume_here(context, registry, job);
    return make_error(Code::usage,
                      "job " + job.name + " (" + id.value + ") is still " + std::string(job::state_name(job.state)),
                      "gridctl job watch " + id.value);
  }
  TRY_ASSIGN(const std::optional<CheckpointSeq> from, wanted_checkpoint(registry, id, parsed));
  TRY_ASSIGN(const job::Spec spec, check_fit(registry, job, parsed, context.now()));
  std::vector<registry::JobRow> twins;  // the workers of a bag are made anew, as far as they are needed
  if (job.spec.tasks) {
    TRY(resume_bag(context.paths(), job));
  } else {
    TRY_ASSIGN(twins, registry.twins(id));
  }
  const auto commit = [&]() -> Result<void> {
    // The secrets are read here, because a daemon may be removing those of a job that has ended.
    TRY_ASSIGN(const auto secrets, secrets_of(context.paths(), job, "gridctl job resume " + id.value));
    if (!secrets.empty()) TRY(control::write_secrets(context.paths().secrets_of(id), secrets));
    if (!(spec == job.spec)) TRY(registry.update_spec(id, spec));
    TRY(registry.apply(id, {context.now(), job::ResumeRequested{from}}));
    for (const registry::JobRow& twin : twins) {
      if (!secrets.empty()) TRY(control::write_secrets(context.paths().secrets_of(twin.id), secrets));
      TRY(registry.apply(twin.id, {context.now(), job::ResumeRequested{}}));
    }
    return {};
  };
  TRY(registry.together(commit));  // a job that was not resumed keeps its former wishes
  TRY(control::ensure_daemon(context.state, true));
  if (parsed.has("wait")) {
    TRY_ASSIGN(const registry::Job after,
               watch(context, registry, id, {.logs = !context.json, .from_start = false, .quiet = context.json}));
    if (context.json) context.print_line(outcome_json(after));
    return outcome_of(after);
  }
  TRY_ASSIGN(const registry::Job now, registry.job(id));
  context.print_line(context.json ? ui::submitted_json(id, now.name, now.state)
                                  : "resumed " + now.name + " (" + id.value + ")");
  return context.note("follow it: gridctl job watch " + id.value);
}
}  // namespace
}  // namespace job_resume

const Command k_job_resume{
    .name = "job resume",
    .summary = "continue an ended or paused job",
    .examples = {{"Continue from the newest checkpoint", "gridctl job resume train-gpt"},
                 {"Continue from the third checkpoint on a particular host, and follow the job",
                  "gridctl job resume train-gpt --from 3 --provider ada --wait"}},
    .description =
        "Continues a paused job where it stopped, and a failed, cancelled or finished job from a checkpoint, as a new attempt of the same job. The "
        "failure count restarts at zero. Secrets are read from the environment again. A job that was stopped by its "
        "budget, max_duration or hard deadline needs a new limit.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"from", 0, "CHECKPOINT", "start from this checkpoint, JOB@NUMBER or NUMBER", "the newest",
                 Completion::checkpoint},
                {"provider", 'p', "NAME", "run only on this host", "", Completion::provider, "", true},
                {"budget", 0, "USD", "new total budget, including the cost so far"},
                {"max-duration", 0, "TIME", "new limit for the run time of all attempts"},
                {"deadline", 0, "TIME", "new deadline: a duration from now, or a time such as 2026-12-01T08:00:00Z"},
                {"restore-from", 0, "any|trusted",
                 "whether plain processes on hosts of your own may load checkpoints of lent hosts"},
                {"traffic", 0, "protected|clear",
                 "whether members of a gang may exchange data unencrypted with borrowed hosts"},
                {"unmeasured", 0, "refuse|allow", "whether it may use GPUs of borrowed hosts before they are measured"},
                {"unproven", 0, "refuse|allow",
                 "whether it may return to borrowed hosts without a complete checkpoint in its first hour there"},
                {"images", 0, "digests|tags", "whether borrowed hosts may run images by tag"},
                {"wait", 0, "", "follow the job until it ends"}},
    .exit_codes = {1, 3, 4, 7, 8, 9, 130},
    .waits = true,
    .run = job_resume::run};

}  // namespace gridctl::cmd
