// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "control/daemon/daemon.hpp"
#include "registry/change_provider.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_drain {
namespace {
constexpr Duration k_look_pause = std::chrono::milliseconds{300};
constexpr Duration k_daemon_check = std::chrono::seconds{2};  // how often a lost daemon is noticed

const std::initializer_list<Positional> k_positionals = {{"NAME", Completion::provider}};

// Shows, line by line, what becomes of the jobs on a host.
class Emptying {
 public:
  Emptying(Context& context, registry::Registry& registry, HostName name)
      : context_(&context), registry_(&registry), name_(std::move(name)) {}

  // Returns true if nothing is left there.
  Result<bool> look() {
    TRY_ASSIGN(const registry::Provider provider, registry_->provider(name_));
    if (!provider.drained)
      return make_error(Code::cancelled, name_.value + " takes jobs again: somebody has put it back");
    TRY_ASSIGN(const std::vector<JobId> jobs, registry_->jobs_on(name_));
    std::set<std::string> here;
    for (const JobId& id : jobs) {
      TRY_ASSIGN(const registry::Job job, registry_->job(id));
      here.insert(id.value);
      tell(job, state_of(job, provider));
    }
    for (const auto& [id, said] : said_) {
      if (here.contains(id) || gone_.contains(id)) continue;
      TRY_ASSIGN(const registry::Job job, registry_->job({id}));
      gone_.insert(id);
      tell(job, job::is_final(job.state)     ? "has ended: " + std::string(job::state_name(job.state))
                : job.provider.value.empty() ? "is gone from " + name_.value
                                             : "is on " + job.provider.value);
    }
    TRY(look_after_daemon(!jobs.empty()));
    return jobs.empty();
  }

 private:
  [[nodiscard]] std::string state_of(const registry::Job& job, const registry::Provider& provider) const {
    const job::Attempt* attempt = job.machine.attempt();
    if (attempt != nullptr && attempt->on(name_) != nullptr) return job.machine.reason_text;
    const bool answers = provider.liveness != "unreachable" && provider.liveness != "lost";
    return answers ? "has left; its files are being cleaned up"
                   : "has left; its files are cleaned up when " + name_.value + " answers again";
  }

  void tell(const registry::Job& job, const std::string& text) {
    std::string& said = said_[job.id.value];
    if (said == text) return;
    said = text;
    context_->note(sanitize(job.name) + " (" + job.id.value + "): " + sanitize(text));
  }

  Result<void> look_after_daemon(bool needed) {
    const BootTime now = context_->clock.boot();
    if (!needed || now < next_check_) return {};
    next_check_ = now + k_daemon_check;
    TRY(control::ensure_daemon(context_->state, true));
    return {};
  }

  Context* context_;
  registry::Registry* registry_;
  HostName name_;
  std::map<std::string, std::string> said_;  // job -> last line
  std::set<std::string> gone_;
  BootTime next_check_{};
};

Result<void> wait_until_empty(Context& context, registry::Registry& registry, const HostName& name) {
  Emptying emptying(context, registry, name);
  return repeat(
      context, k_look_pause, [&] { return emptying.look(); }, name.value + " stays drained, and is still being emptied",
      "gridctl provider drain " + name.value + " --wait");
}

std::string summary_of(const HostName& name, std::size_t jobs) {
  std::string text = name.value + " gets no new jobs";
  if (jobs == 0) return text;
  return text + "; " + std::to_string(jobs) +
         (jobs == 1 ? " job moves when its next checkpoint is safe and another host can run it"
                    : " jobs move when their next checkpoints are safe and other hosts can run them");
}

Result<int> drain(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<Duration> within, parsed.duration("within"));
  TRY_ASSIGN(registry::Registry registry, context.open());
  const auto edit = [&](registry::Provider& row) -> Result<void> {
    row.drained = true;
    row.drain_within = within.value_or(registry::Provider{}.drain_within);
    return {};
  };
  TRY_ASSIGN(const registry::Provider provider,
             registry::change_provider(registry, HostName{parsed.positionals[0]}, edit));
  TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(provider.name));
  if (!jobs.empty()) TRY(control::ensure_daemon(context.state, true));
  if (!parsed.has("wait"))
    return context.print_line(context.json ? ui::provider_json(provider) : summary_of(provider.name, jobs.size()));
  if (!jobs.empty()) context.note(summary_of(provider.name, jobs.size()));
  TRY(wait_until_empty(context, registry, provider.name));
  return context.print_line(context.json ? ui::provider_json(provider) : provider.name.value + " is empty");
}

Result<int> undrain(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  const auto edit = [](registry::Provider& row) -> Result<void> {
    row.drained = false;
    return {};
  };
  TRY_ASSIGN(const registry::Provider provider,
             registry::change_provider(registry, HostName{parsed.positionals[0]}, edit));
  return context.print_line(context.json ? ui::provider_json(provider) : provider.name.value + " gets jobs again");
}
}  // namespace
}  // namespace provider_drain

const Command k_provider_drain{
    .name = "provider drain",
    .summary = "take a host out of service and move its jobs",
    .examples = {{"Take a host out of service; jobs move once their next checkpoint is safe",
                  "gridctl provider drain ada"},
                 {"Wait until the host is empty, at most an hour", "gridctl provider drain ada --wait --timeout 1h"},
                 {"Do not wait for checkpoints: jobs stop and keep their last complete one",
                  "gridctl provider drain ada --within 0s"}},
    .description =
        "Stops giving new jobs to a host, and empties it. Each job continues until a checkpoint made after this "
        "command is safe, for at most ten minutes (--within). gridctl then asks the job to exit, gives it 30 s to save "
        "once more, and continues it from its newest checkpoint on another host. This counts neither as a failure nor "
        "as a lost host.\n\nA job stops only when another host can run it at that moment. Until then it stays; "
        "'gridctl job explain' and 'gridctl job events' say why. 'gridctl provider undrain' cancels moves that have "
        "not started.\n\nWith --wait, the command returns when no trace of a job is left on the host. Ctrl-C ends only "
        "the waiting.",
    .positionals = provider_drain::k_positionals,
    .options = {{"wait", 0, "", "return when the host is empty"},
                {"within", 0, "TIME", "wait this long for a job's next checkpoint", "10m"}},
    .exit_codes = {3, 7, 9, 130},
    .waits = true,
    .run = provider_drain::drain};
const Command k_provider_undrain{.name = "provider undrain",
                                 .summary = "return a host to service",
                                 .examples = {{"Return the host to service", "gridctl provider undrain ada"}},
                                 .description =
                                     "Reverses 'gridctl provider drain'. Jobs that have not stopped yet stay on the "
                                     "host. Jobs that have moved do not come back.",
                                 .positionals = provider_drain::k_positionals,
                                 .exit_codes = k_exits_job,
                                 .run = provider_drain::undrain};

}  // namespace gridctl::cmd
