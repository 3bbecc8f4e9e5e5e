// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/register_host.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "control/reach/request.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint32_t k_probe_stream = 1;
constexpr Duration k_probe_wait = std::chrono::seconds{60};  // every tool there, each with its own limit

Result<Inventory> probe_host(wire::Link& link, BootTime deadline, os::Clock& clock) {
  deadline = std::min(deadline, clock.boot() + k_probe_wait);
  TRY_ASSIGN(const std::string payload, ask(link, k_probe_stream, wire::encode_plain("probe"), deadline));
  return parse_inventory(payload);
}

Error same_machine(const registry::Provider& found, const registry::Provider& known) {
  const bool same_boot = found.inventory->boot_id == known.inventory->boot_id;
  return make_error(Code::exists,
                    "this machine is already registered, as " + known.name.value + " at " + known.address +
                        ": it shows the same SSH host key" + (same_boot ? " and runs the same kernel" : ""),
                    "for a second way to it: gridctl provider way " + known.name.value + " " + shell_quote(found.address) +
                        "; for another name: gridctl provider rm " + known.name.value +
                        " first; for a clone that was given the same key: --force");
}
}  // namespace

Result<Twin> find_twin(const Inventory& found, std::span<const ssh::HostKey> keys,
                       const std::vector<registry::Provider>& others, const Paths& paths) {
  Twin twin;
  for (const registry::Provider& other : others) {
    TRY_ASSIGN(const auto pins, pins_of(other, paths));
    if (!pins) continue;
    const bool shared = std::any_of(keys.begin(), keys.end(), [&](const ssh::HostKey& key) {
      return std::find(pins->begin(), pins->end(), key) != pins->end();
    });
    if (shared) return Twin{Twin::Kind::same_key, other};
    const bool kernel = !found.machine_id.empty() && found.machine_id == other.inventory->machine_id &&
                        !found.boot_id.empty() && found.boot_id == other.inventory->boot_id;
    if (kernel) twin = {Twin::Kind::same_kernel, other};
  }
  return twin;
}

Result<Examined> examine(AgentNetwork& net, registry::Provider provider, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const transfer::BulkLink bulk, net.open(provider, deadline));
  if (bulk.way.empty() || bulk.way == provider.address) provider.transport = bulk.transport;
  if (!bulk.peer_key.empty()) provider.peer_key = bulk.peer_key;
  TRY_ASSIGN(
      provider.inventory,
      probe_host(*bulk.link, deadline, clock).context("while taking the inventory of " + provider.name.value));
  sched::name_models(provider.inventory.edit());  // the catalogue is ours: what the host says of models is not believed
  provider.last_seen_at = clock.wall();
  provider.liveness = "answering";
  std::optional<EngineKind> wanted;
  if (Result<EngineKind> engine = parse_engine(provider.engine); engine) wanted = *engine;
  std::vector<probe::Finding> findings = probe::preflight(provider.inventory, wanted, clock.wall());
  return Examined{std::move(provider), std::move(findings), {}};
}

Result<registry::Way> try_way(AgentNetwork& net, const registry::Provider& provider, const registry::Way& typed,
                              const TrustRequest& request, const Paths& paths, BootTime deadline, os::Clock& clock) {
  registry::Provider by = provider.by(typed);
  by.peer_key.clear();  // which host it is, is judged here: nothing of it can be accepted
  by.inventory.edit().machine_id.clear();
  TRY_ASSIGN(Trusted trusted, trust_provider(std::move(by), request, paths, deadline, clock));
  TRY_ASSIGN(const Examined found, examine(net, std::move(trusted.provider), deadline, clock));
  const auto refuse = [&](const std::string& what, const std::string& met, const std::string& known) {
    return make_error(Code::refused,
                      "another machine answers at " + sanitize(typed.address) + ": its " + what + " is " +
                          (met.empty() ? "unknown" : sanitize(met, 64)) + ", that of " + provider.name.value + " is " +
                          sanitize(known, 64),
                      "gridctl provider register NAME " + shell_quote(typed.address) + "   # as a host of its own");
  };
  const std::string &identity = provider.peer_key, &proved = found.provider.peer_key;
  if (!identity.empty() && proved != identity) return refuse("identity", proved, identity);
  const std::string &known = provider.inventory->machine_id, &met = found.provider.inventory->machine_id;
  if (!known.empty() && !met.empty() && known != met) return refuse("machine id", met, known);
  return registry::Way(found.provider);
}

Result<Examined> enroll(AgentNetwork& net, const EnrollRequest& request, const Paths& paths, BootTime deadline,
                        os::Clock& clock) {
  registry::Provider provider = request.provider;
  provider.address = request.address;
  TRY_ASSIGN(Trusted trusted, trust_provider(std::move(provider), request, paths, deadline, clock));
  TRY_ASSIGN(Examined examined, examine(net, std::move(trusted.provider), deadline, clock));
  TRY_ASSIGN(const Twin twin, find_twin(examined.provider.inventory, trusted.keys, request.others, paths));
  if (twin.kind == Twin::Kind::same_key && !request.force) return same_machine(examined.provider, twin.provider);
  if (twin.kind != Twin::Kind::none) examined.shares_machine_with = twin.provider.name;
  return examined;
}

}  // namespace gridctl::control
