// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/findings.hpp"
#include "control/fleet/register_host.hpp"
#include "control/fleet/rescan.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_check {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{30};  // the agent over a thin link; all else has limits of seconds

constexpr Example k_examples[] = {
    {"Can jobs run there?", "gridctl provider check ada"},
    {"It was mended: put it back", "gridctl provider check ada"},
    {"For a script", "gridctl provider check ada --json"},
    {"Its key has changed, and its owner says to what", "gridctl provider check ada --host-key SHA256:l5Kx..."}};
constexpr Positional k_positionals[] = {{"NAME", Completion::provider}};
constexpr Option k_options[] = {{"host-key", 0, "SHA256:...", "pin this key of the host's instead of the former one"}};

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY_ASSIGN(const ControllerId controller, registry.controller_id());
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  if (parsed.has("host-key"))
    TRY(control::pin_again(provider, parsed.value("host-key"), context.paths(), deadline, context.clock));
  TRY_ASSIGN(const control::Examined examined,
             control::examine(provider, context.paths(), controller, deadline, context.clock));
  TRY(control::keep_examined(registry, examined.provider, context.now()));
  std::vector<probe::Finding> findings = examined.findings;
  for (probe::Finding& one : health_findings(
           control::check_health(registry, examined.provider, context.paths(), controller, deadline, context.clock),
           provider.name))
    findings.push_back(std::move(one));
  const bool passed = probe::passed(findings);
  if (context.json)
    context.print_line("{\"name\":" + ui::quoted(provider.name.value) + ",\"passed\":" + (passed ? "true" : "false") +
                       ",\"findings\":" + findings_json(findings) + "}");
  show_findings(context, findings);
  if (!passed)
    return make_error(Code::engine, "jobs cannot run on " + provider.name.value + " until what failed is mended");
  if (!context.json) context.print_line(provider.name.value + " is ready");
  return 0;
}
}  // namespace
}  // namespace provider_check

const Command k_provider_check{.noun = "provider",
                               .verb = "check",
                               .summary = "look at a host again",
                               .examples = provider_check::k_examples,
                               .description =
                                   "Connects, takes inventory anew and checks whether jobs can run. A quarantine of "
                                   "what is found healthy is lifted. The pinned host key is changed only by "
                                   "--host-key, and only to a key that the host shows.",
                               .positionals = provider_check::k_positionals,
                               .options = provider_check::k_options,
                               .exit_codes = k_exits_host,
                               .waits = true,
                               .run = provider_check::run};

}  // namespace gridctl::cmd
