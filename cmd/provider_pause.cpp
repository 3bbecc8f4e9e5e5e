// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/pausing.hpp"
#include "control/follow/pauses.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_pause {
namespace {
const std::initializer_list<Positional> k_positionals = {{"NAME", Completion::provider}};
constexpr std::initializer_list<int> k_exits = {2, 3, 5, 7, 130};

// Visits each running job of the host that is not yet paused, or resumed, as wanted. An error names those that failed.
Result<void> each_job(Context& context, registry::Registry& registry, const HostName& name, const PauseWish& wish) {
  TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(name));
  std::vector<std::string> failed;
  for (const JobId& id : jobs) {
    TRY_ASSIGN(const registry::Job job, registry.job(id));
    TRY_ASSIGN(const bool paused, is_paused(registry, job));
    if (!std::holds_alternative<job::Running>(job.machine.phase) || paused != wish.resume) continue;
    const Result<std::string> done = pause_in_place(context, registry, job, wish);
    const std::string text = sanitize(job.name) + " (" + id.value + ") ";
    if (done) context.note(text + *done);
    else if (done.error().code == Code::not_found) context.note(text + "ended before it could be stopped");
    else failed.push_back(text + "stays as it is: " + done.error().one_line());
  }
  for (const std::string& line : failed) context.note(line);
  if (failed.empty()) return {};
  return make_error(Code::refused,
                    ui::counted(failed.size(), "job") + " on " + name.value +
                        " could not be " + (wish.resume ? "resumed" : "paused"),
                    wish.resume ? "gridctl provider unpause " + name.value : "gridctl provider drain " + name.value);
}

Result<int> pause(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<Duration> most, parsed.duration("max"));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY(control::set_host_paused(registry, provider.name, true, context.now()));  // before: no other job takes the room
  TRY(each_job(context, registry, provider.name, {false, parsed.has("gpu-only"), most}));
  return context.print_line(context.json ? ui::provider_json(provider)
                                         : provider.name.value + " is paused and gets no new jobs");
}

Result<int> unpause(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY(each_job(context, registry, provider.name, {true}));
  TRY(control::set_host_paused(registry, provider.name, false, context.now()));
  return context.print_line(context.json ? ui::provider_json(provider) : provider.name.value + " gets jobs again");
}
}  // namespace
}  // namespace provider_pause

const Command k_provider_pause{
    .name = "provider pause",
    .summary = "free a host's GPUs, keeping its jobs in memory",
    .examples = {{"Free the GPUs of a host in seconds; its jobs stay in its memory", "gridctl provider pause ada"},
                 {"Continue them", "gridctl provider unpause ada"}},
    .description =
        "Pauses every job that runs on the host, as 'gridctl job pause' does, and gives the host no new jobs until "
        "'gridctl provider unpause'. For a job that cannot be paused, the command says why and leaves it running; "
        "'gridctl provider drain' moves such jobs from their next checkpoints.",
    .positionals = provider_pause::k_positionals,
    .options = {{"gpu-only", 0, "", "free the GPUs, but do not stop the processes of the jobs"},
                {"max", 0, "TIME", "after this long, jobs move to another host from their last checkpoints", "2h"}},
    .exit_codes = provider_pause::k_exits,
    .run = provider_pause::pause};
const Command k_provider_unpause{
    .name = "provider unpause",
    .summary = "continue the jobs of a paused host",
    .examples = {{"Continue the jobs of a host", "gridctl provider unpause ada"}},
    .description =
        "Continues every job that is paused on the host, and lets the host take jobs again. A job whose GPU is "
        "in use by another program stays paused; the command says so.",
    .positionals = provider_pause::k_positionals,
    .exit_codes = provider_pause::k_exits,
    .run = provider_pause::unpause};

}  // namespace gridctl::cmd
