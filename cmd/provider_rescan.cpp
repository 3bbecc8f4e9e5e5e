// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "control/fleet/rescan.hpp"

namespace gridctl::cmd {

namespace provider_rescan {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{2};  // login, upload of the agent over a slow link, inventory

std::string changes_json(const HostName& name, std::span<const control::InventoryChange> changes) {
  const std::string list = json_list(changes, [](const control::InventoryChange& change) {
    return JsonObject()("what", change.what)("before", change.before)("after", change.after).text();
  });
  return JsonObject()("name", name.value).raw("changes", list).text();
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  TRY_ASSIGN(const control::Examined examined, control::examine(net, provider, deadline, context.clock));
  TRY_ASSIGN(const std::vector<control::InventoryChange> changes,
             control::keep_examined(registry, examined.provider, context.now()));
  if (context.json) return context.print_line(changes_json(provider.name, changes));
  for (const control::InventoryChange& change : changes) context.print_line(sanitize(control::describe(change)));
  if (changes.empty()) context.print_line(provider.name.value + " is unchanged");
  return 0;
}
}  // namespace
}  // namespace provider_rescan

const Command k_provider_rescan{
    .name = "provider rescan",
    .summary = "update a host's inventory",
    .examples = {{"After you added a card", "gridctl provider rescan ada"},
                 {"In a script", "gridctl provider rescan ada --json | jq .changes"}},
    .description =
        "Connects, takes a new inventory and prints the changes: added or removed parts, other versions, limits and "
        "links. The changes go into the host's history, which 'gridctl provider show' lists. Clocks, temperatures and "
        "free space do not count as changes. The daemon does the same after a host has rebooted.",
    .positionals = {{"NAME", Completion::provider}},
    .exit_codes = k_exits_host,
    .waits = true,
    .run = provider_rescan::run};

}  // namespace gridctl::cmd
