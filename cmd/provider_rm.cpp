// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/network.hpp"
#include "control/copies/remotes.hpp"
#include "control/daemon/daemon.hpp"
#include "control/fleet/leave_host.hpp"
#include "control/reach/relay.hpp"
#include "control/reach/ways.hpp"

namespace gridctl::cmd {

namespace provider_rm {
namespace {
constexpr Duration k_clean_up = std::chrono::seconds{30};  // for the daemon to remove what jobs that ended have left there
constexpr Duration k_tidy = std::chrono::seconds{15};  // for the host to remove what is ours

Error busy_error(const HostName& name, const std::vector<JobId>& jobs) {
  std::string ids;
  for (const JobId& job : jobs) ids += (ids.empty() ? "" : ", ") + job.value;
  return make_error(Code::busy, "provider " + name.value + " has jobs: " + ids,
                    "gridctl provider drain " + name.value + ", or gridctl provider rm " + name.value + " --force");
}

// Ended jobs may have left data on the host for a moment: the daemon removes that first.
Result<void> wait_for_cleanup(Context& context, registry::Registry& registry, const HostName& name) {
  const BootTime until = context.clock.boot() + context.timeout.value_or(k_clean_up);
  bool asked = false;
  const auto look = [&]() -> Result<bool> {
    TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(name));
    for (const JobId& id : jobs) {
      TRY_ASSIGN(const registry::Job job, registry.job(id));
      if (!job::is_final(job.state)) return true;  // it runs there
    }
    if (jobs.empty() || context.clock.boot() >= until) return true;
    if (!asked) TRY(control::ensure_daemon(context.state, true));
    asked = true;
    return false;
  };
  return repeat(context, k_follow_period, look, "the host stays registered", "gridctl provider rm " + name.value);
}

// The host is forgotten in any case; what cannot be removed now is named.
void tidy_lent(Context& context, const registry::Provider& provider) {
  const Result<lend::Invitation> invitation = lend::invitation_of(context.state, provider.address);
  if (!invitation) return;
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_tidy);
  const Result<void> closed =
      control::close_relay_of(provider, *invitation, context.paths(), deadline, context.clock);
  if (!closed)
    context.note("the way to it stays open at the relay (" + sanitize(closed.error().message) +
                 "); to close it, remove the line that ends with gridctl-lend-" + invitation->id +
                 " from ~/.ssh/authorized_keys there");
  lend::forget_invitation(context.state, invitation->id);
  context.note("its owner can remove the rest of gridctl there: gridctl lend leave");
}

void tidy(Context& context, registry::HostRecords& registry, const registry::Provider& provider) {
  if (control::is_lent(provider)) return tidy_lent(context, provider);
  const Result<ControllerId> controller = registry.controller_id();
  if (!controller) return;
  control::SshNetwork net(context.clock, context.paths(), *controller);
  const Result<control::LeftBehind> left =
      control::leave_host(net, provider, *controller, context.clock.boot() + context.timeout.value_or(k_tidy));
  const std::string by_hand = "ssh " + provider.address + " rm -rf .gridctl";
  if (!left)
    context.note("~/.gridctl stays on the host, which does not answer (" + sanitize(left.error().message) +
                 "); to remove it: " + by_hand);
  else if (left->busy) context.note("~/.gridctl stays on the host while jobs are there; to remove it then: " + by_hand);
  else if (left->bytes > 0)
    context.note("~/.gridctl (" + format_size(left->bytes) + ") stays on the host: others use it, too");
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY_ASSIGN(const std::vector<std::string> remotes, control::remotes_on(registry, provider.name));
  if (!remotes.empty() && !parsed.has("force"))
    return make_error(Code::busy, "provider " + provider.name.value + " keeps copies, as remote " + remotes.front(),
                      "gridctl store rm " + remotes.front());
  if (!parsed.has("force")) TRY(wait_for_cleanup(context, registry, provider.name));
  TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(provider.name));
  if (!jobs.empty() && !parsed.has("force")) return busy_error(provider.name, jobs);
  const auto forget = [&]() -> Result<void> {
    TRY(registry.remove_provider(provider.name));
    for (const JobId& job : jobs) TRY(registry.apply(job, {context.now(), job::HostForgotten{provider.name}}));
    return {};
  };
  TRY(registry.together(forget));  // no job may be left on a host that nobody knows
  if (!jobs.empty()) TRY(control::ensure_daemon(context.state, true));
  context.print_line(context.json ? JsonObject()("name", provider.name.value)("removed", true).text()
                                  : provider.name.value + " is forgotten");
  if (!jobs.empty()) context.note("jobs that still run there end on their own when their lease ends");
  tidy(context, registry, provider);
  return 0;
}
}  // namespace
}  // namespace provider_rm

const Command k_provider_rm{
    .name = "provider rm",
    .summary = "forget a host",
    .examples = {{"Remove a host", "gridctl provider rm ada"},
                 {"Remove a host with jobs; they continue elsewhere", "gridctl provider rm ada --force"}},
    .description =
        "Removes a host from the registry. Refused while jobs are on it; with --force they are given up there and "
        "continue on other hosts. Refused, too, while it is a remote for copies; with --force it stores no more copies "
        "until it is registered again. Its pinned host key is kept. What gridctl has put on the host (~/.gridctl: the "
        "agent, and a cache of what jobs need) is removed, unless others use it, too.",
    .positionals = {{"NAME", Completion::provider}},
    .options = {{"force", 'f', "", "also when jobs are on it, or copies"}},
    .exit_codes = {3, 5, 7, 130},
    .waits = true,
    .run = provider_rm::run};

}  // namespace gridctl::cmd
