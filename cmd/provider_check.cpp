// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/findings.hpp"
#include "control/fleet/register_host.hpp"
#include "control/fleet/rescan.hpp"

namespace gridctl::cmd {

namespace provider_check {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{30};  // the agent over a thin link; all else has limits of seconds

// The machine id of a host that was reinstalled is another one, too.
Result<void> accept_identity(const std::string& key, registry::Provider& provider) {
  if (key != "none" && !parse_digest(key))
    return make_error(Code::usage, "--accept-identity takes the identity that the refusal shows, or none: not '" + sanitize(key) + "'",
                      "gridctl provider check " + provider.name.value);
  provider.peer_key = key == "none" ? "" : key;
  provider.inventory.edit().machine_id.clear();
  return {};
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  if (parsed.has("host-key"))
    TRY(control::pin_again(provider, parsed.value("host-key"), context.paths(), deadline, context.clock));
  if (parsed.has("accept-identity")) TRY(accept_identity(parsed.value("accept-identity"), provider));
  TRY_ASSIGN(const control::Examined examined, control::examine(net, provider, deadline, context.clock));
  TRY(control::keep_examined(registry, examined.provider, context.now()));
  std::vector<probe::Finding> findings = examined.findings;
  for (probe::Finding& one : health_findings(
           control::check_health(registry, net, examined.provider, deadline, context.clock),
           provider.name))
    findings.push_back(std::move(one));
  const bool passed = probe::passed(findings);
  if (context.json)
    context.print_line(
        JsonObject()("name", provider.name.value)("passed", passed).raw("findings", findings_json(findings)).text());
  show_findings(context, findings);
  if (!passed)
    return make_error(Code::engine, "jobs cannot run on " + provider.name.value + " until the failed checks pass");
  if (!context.json) context.print_line(provider.name.value + " is ready");
  return 0;
}
}  // namespace
}  // namespace provider_check

const Command k_provider_check{
    .name = "provider check",
    .summary = "check a host again",
    .examples = {{"Check whether jobs can run there", "gridctl provider check ada"},
                 {"After a repair, return the host to service", "gridctl provider check ada"},
                 {"In a script", "gridctl provider check ada --json"},
                 {"Accept a new host key, confirmed by the host's owner",
                  "gridctl provider check ada --host-key SHA256:l5Kx..."},
                 {"Accept a host that was reinstalled", "gridctl provider check ada --accept-identity 5f0e..."}},
    .description =
        "Connects, takes a new inventory and checks whether jobs can run. Lifts the quarantine of whatever is healthy "
        "now. Only --host-key changes the pinned host key, and only to a key that the host presents.\n\nEach host has an identity: a "
        "key that its agent made at its first start and proves at each connection. A host that proves another identity, or none, is "
        "refused and gets no jobs, until --accept-identity pins the new one. See gridctl-security(7).",
    .positionals = {{"NAME", Completion::provider}},
    .options = {
        {"host-key", 0, "SHA256:...", "pin this host key instead of the old one"},
        {"accept-identity", 0, "KEY", "pin this identity instead of the old one; none: whichever the host proves"}},
    .exit_codes = k_exits_host,
    .waits = true,
    .run = provider_check::run};

}  // namespace gridctl::cmd
