// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "control/daemon/daemon.hpp"
#include "os/files.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_cancel {
namespace {
constexpr Duration k_grace = std::chrono::seconds{30};

Result<void> tell(Context& context, registry::JobRecords& registry, const JobId& id, std::string_view what) {
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  if (context.json) context.print_line(ui::submitted_json(id, job.name, job.state));
  else context.print_line(job.name + " (" + id.value + ") " + std::string(what));
  return {};
}

// A daemon that never saw the job removes nothing of it.
Result<void> forget_secrets(const Context& context, const JobId& id) {
  return os::remove_tree(context.paths().secrets_of(id));
}

Result<int> run(Context& context, const Parsed& parsed) {
  if (parsed.has("now") && parsed.has("grace"))
    return make_error(Code::usage, "--now and --grace cannot be combined", "gridctl job cancel --help");
  TRY_ASSIGN(const std::optional<Duration> grace, parsed.duration("grace"));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job before, registry.job(id));
  if (job::is_final(before.state)) {
    TRY(forget_secrets(context, id));
    TRY(tell(context, registry, id, "has already ended: " + std::string(job::state_name(before.state))));
    return 0;
  }
  const Duration wanted = parsed.has("now") ? Duration{0} : grace.value_or(k_grace);
  TRY_ASSIGN(const job::Step step, registry.apply(id, {context.now(), job::CancelRequested{wanted}}));
  if (job::is_final(step.state.visible())) TRY(forget_secrets(context, id));
  if (step.state.needs_controller()) TRY(control::ensure_daemon(context.state, true));
  if (parsed.has("wait")) {
    TRY(follow(context, registry, id,
               [](const registry::Job& job) -> Result<bool> { return job::is_final(job.state); }));
  }
  TRY_ASSIGN(const registry::Job after, registry.job(id));
  TRY(tell(context, registry, id,
           job::is_final(after.state) ? "ended: " + std::string(job::state_name(after.state))
                                      : std::string("is being cancelled")));
  return 0;
}
}  // namespace
}  // namespace job_cancel

const Command k_job_cancel{
    .name = "job cancel",
    .summary = "stop a job",
    .examples = {{"Stop a job and give it 30 s to save", "gridctl job cancel train-gpt"},
                 {"Kill it now, and wait until it is gone", "gridctl job cancel @last --now --wait"}},
    .description =
        "Sends SIGTERM to the job, kills it after the grace period, and saves its last checkpoint and output. You can "
        "resume a cancelled job. Cancelling a job that has ended changes nothing.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"grace", 0, "TIME", "time between SIGTERM and SIGKILL", "30s"},
                {"now", 0, "", "kill it immediately"},
                {"wait", 0, "", "return when the job has ended"}},
    .exit_codes = k_exits_follow,
    .waits = true,
    .run = job_cancel::run};

}  // namespace gridctl::cmd
