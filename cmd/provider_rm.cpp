// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "control/copies/remotes.hpp"
#include "control/daemon/daemon.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_rm {
namespace {
constexpr Example k_examples[] = {
    {"Remove a host", "gridctl provider rm ada"},
    {"Remove a host with jobs; they continue elsewhere", "gridctl provider rm ada --force"}};
constexpr Positional k_positionals[] = {{"NAME", Completion::provider}};
constexpr Option k_options[] = {{"force", 'f', "", "even if the host has jobs or copies"}};
constexpr int k_exits[] = {3, 5, 7};

Error busy_error(const HostName& name, const std::vector<JobId>& jobs) {
  std::string ids;
  for (const JobId& job : jobs) ids += (ids.empty() ? "" : ", ") + job.value;
  return make_error(Code::busy, "provider " + name.value + " has jobs: " + ids,
                    "gridctl provider drain " + name.value + ", or gridctl provider rm " + name.value + " --force");
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY_ASSIGN(const std::vector<std::string> places, control::places_on(registry, provider.name));
  if (!places.empty() && !parsed.has("force"))
    return make_error(Code::busy, "provider " + provider.name.value + " keeps copies, as place " + places.front(),
                      "gridctl store rm " + places.front());
  TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(provider.name));
  if (!jobs.empty() && !parsed.has("force")) return busy_error(provider.name, jobs);
  const auto forget = [&]() -> Result<void> {
    TRY(registry.remove_provider(provider.name));
    for (const JobId& job : jobs) TRY(registry.apply(job, {context.now(), job::HostForgotten{provider.name}}));
    return {};
  };
  TRY(registry.together(forget));  // no job may be left on a host that nobody knows
  if (!jobs.empty()) TRY(control::ensure_daemon(context.state, true));
  context.print_line(context.json ? "{\"name\":" + ui::quoted(provider.name.value) + ",\"removed\":true}"
                                  : provider.name.value + " is forgotten");
  if (!jobs.empty()) context.note("what still runs there ends by itself when its lease does");
  return 0;
}
}  // namespace
}  // namespace provider_rm

const Command k_provider_rm{
    .noun = "provider",
    .verb = "rm",
    .summary = "remove a host",
    .examples = provider_rm::k_examples,
    .description =
        "Removes a host from the registry. gridctl refuses while the host has jobs; with --force, it gives them up "
        "there and continues them elsewhere. It also refuses while the host is a remote for copies; with --force, the "
        "host receives no copies until you register it again. The pinned host key is kept.",
    .positionals = provider_rm::k_positionals,
    .options = provider_rm::k_options,
    .exit_codes = provider_rm::k_exits,
    .run = provider_rm::run};

}  // namespace gridctl::cmd
