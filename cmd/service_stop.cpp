// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/service_now.hpp"
#include "control/daemon/daemon.hpp"

namespace gridctl::cmd {

namespace service_stop {
namespace {
constexpr Duration k_grace = std::chrono::seconds{30};
constexpr Duration k_drain_look = std::chrono::milliseconds{100};
const std::initializer_list<Positional> k_positionals = {{"NAME", Completion::job}};

// Refuses new requests, and lets those under way finish. A refused client learns it at once.
void drain(Context& context, registry::JobRecords& registry, const JobId& id, Duration most) {
  for (const BootTime deadline = context.clock.boot() + most; context.clock.boot() < deadline;) {
    if (!ask_service(context, id, control::refuse_command(context.now()))) return;
    const Result<ServiceNow> now = service_now(context, registry, id);
    if (!now || !now->all || now->all->under_way + now->all->queued == 0) return;
    os::pause_for(k_drain_look);
  }
  context.note("requests are still under way after " + format_duration(most) + ": they end now");
}

Result<bool> all_ended(registry::JobRecords& registry, const JobId& id) {
  TRY_ASSIGN(const std::vector<registry::JobRow> twins, registry.twins(id));
  for (const registry::JobRow& twin : twins)
    if (!job::is_final(twin.state)) return false;
  return true;
}

Result<int> stop(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId id, resolve_service(registry, parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job leader, registry.job(id));
  const std::string who = "service " + leader.name + " (" + id.value + ")";
  if (job::is_final(leader.state)) return context.print_line(who + " has ended already");
  if (!parsed.has("now")) drain(context, registry, id, leader.spec.service->drain);
  TRY_ASSIGN(const job::Step step,
             registry.apply(id, {context.now(), job::CancelRequested{parsed.has("now") ? Duration{} : k_grace}}));
  if (step.state.needs_controller()) TRY(control::ensure_daemon(context.state, true));
  if (!parsed.has("wait")) return context.print_line(who + " is being stopped");
  TRY(follow(context, registry, id, [&](const registry::Job& job) -> Result<bool> {
    return job::is_final(job.state) ? all_ended(registry, id) : Result<bool>(false);
  }));
  return context.print_line(who + " has ended");
}

Result<int> logs(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<std::uint64_t> replica, parsed.whole("replica"));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, resolve_service(registry, parsed.positionals[0]));
  Parsed of_job = parsed;
  of_job.options.erase("replica");
  of_job.positionals = {replica.value_or(1) == 1 ? id.value : registry::twin_id(id, static_cast<int>(*replica)).value};
  return k_job_logs.run(context, of_job);
}
}  // namespace
}  // namespace service_stop

const Command k_service_stop{
    .name = "service stop",
    .summary = "stop a service",
    .examples = {{"Stop a service when its requests are answered", "gridctl service stop chat"},
                 {"Stop it at once, and wait until nothing of it runs", "gridctl service stop chat --now --wait"}},
    .description =
        "Takes no new requests, waits until those that are under way are answered, at most as long as 'drain' of "
        "the job file says, and stops all replicas.",
    .positionals = service_stop::k_positionals,
    .options = {{"now", 0, "", "do not wait for requests that are under way"},
                {"wait", 0, "", "return when all replicas have ended"}},
    .exit_codes = k_exits_follow,
    .waits = true,
    .run = service_stop::stop};

const Command k_service_logs{.name = "service logs",
                             .summary = "print the output of a replica",
                             .examples = {{"Print the output of the first replica", "gridctl service logs chat"},
                                          {"Follow the second one", "gridctl service logs -f chat --replica 2"}},
                             .description = "Prints the output of one replica, on all hosts where it ran.",
                             .positionals = service_stop::k_positionals,
                             .options = {{"follow", 'f', "", "continue until the replica ends"},
                                         {"tail", 'n', "N", "start with the last N lines"},
                                         {"replica", 0, "N", "the output of this replica", "1"}},
                             .exit_codes = k_exits_job,
                             .waits = true,
                             .run = service_stop::logs};

}  // namespace gridctl::cmd
