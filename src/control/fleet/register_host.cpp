// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/register_host.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "control/reach/agent_link.hpp"
#include "control/reach/connect_agent.hpp"
#include "sched/catalogue.hpp"
#include "ssh/user_trust.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint32_t k_probe_stream = 1;
constexpr Duration k_probe_wait = std::chrono::seconds{60};  // every tool there, each with its own limit

std::string shown(std::span<const ssh::HostKey> keys) {
  std::string text;
  for (const ssh::HostKey& key : keys) text += (text.empty() ? "" : ", ") + key.type + " " + key.fingerprint;
  return text;
}

std::string filled_in(std::string command, const std::string& fingerprint) {
  static constexpr std::string_view k_place = "HOST_KEY";
  if (const std::size_t at = command.find(k_place); at != std::string::npos)
    command.replace(at, k_place.size(), fingerprint);
  return command;
}

const ssh::HostKey* find_key(std::span<const ssh::HostKey> keys, const std::string& fingerprint) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ssh::HostKey& key) { return key.fingerprint == fingerprint; });
  return found == keys.end() ? nullptr : &*found;
}

// The user's configuration may give the address another user, port or name: what people see is where it leads.
registry::Provider addressed(registry::Provider provider, const ssh::Target& target, const std::string& typed) {
  provider.user = target.user;
  provider.host = target.host;
  provider.port = target.port;
  provider.alias = target.alias != target.host ? target.alias : "";
  provider.address = typed;
  return provider;
}

Result<Inventory> probe_host(AgentSession session, BootTime deadline, os::Clock& clock) {
  deadline = std::min(deadline, clock.boot() + k_probe_wait);
  BlockingLink link(std::move(session), clock);
  TRY(link.send({wire::FrameKind::request, k_probe_stream, wire::encode_plain("probe")}, deadline));
  for (;;) {
    TRY_ASSIGN(const wire::Frame frame, link.receive(deadline));
    if (frame.stream != k_probe_stream) continue;  // unsolicited events
    if (frame.kind != wire::FrameKind::reply)
      return make_error(Code::protocol_violation, "the agent answered the probe with a frame of another kind");
    if (std::optional<Error> refused = wire::payload_error(frame.payload)) return *std::move(refused);
    return parse_inventory(frame.payload);
  }
}

// A key file that is not there is the user's mistake, not an unknown provider.
Result<ssh::Target> resolved(const registry::Provider& provider, const Paths& paths) {
  Result<ssh::Target> target = target_of(provider, paths);
  if (!target && target.error().code == Code::not_found) target.error().code = Code::usage;
  return target;
}

Error wrong_key(const ssh::Target& target, const std::string& wanted, std::span<const ssh::HostKey> keys) {
  return make_error(Code::host_key_mismatch,
                    "the host key of " + target.address() + " is not " + sanitize(wanted) + ": the host shows " +
                        shown(keys) + "; nothing was sent",
                    "ask the host's owner for the fingerprint");
}

Error changed_key(const ssh::Target& target, std::span<const ssh::HostKey> pins, std::span<const ssh::HostKey> keys,
                  const std::string& accept) {
  return make_error(Code::host_key_mismatch,
                    "the host key of " + target.address() + " has changed: pinned is " + shown(pins) +
                        ", the host shows " + shown(keys) +
                        "; either it was reinstalled or someone stands in between; nothing was sent",
                    "if its owner confirms: " + accept);
}

Error unknown_key(const ssh::Target& target, std::span<const ssh::HostKey> keys, const std::string& accept) {
  return make_error(
      Code::host_key_mismatch,
      "the host key of " + target.address() + " is not known: the host shows " + shown(keys) + "; nothing was sent",
      "if its owner confirms: " + accept);
}

Error same_machine(const registry::Provider& found, const registry::Provider& known) {
  const bool same_boot = found.inventory->boot_id == known.inventory->boot_id;
  return make_error(Code::exists,
                    "this machine is registered already, as " + known.name.value + " at " + known.address +
                        ": it shows the same SSH host key" + (same_boot ? " and runs the same kernel" : ""),
                    "gridctl provider show " + known.name.value +
                        "; for another name or address: gridctl provider rm " + known.name.value +
                        " first; for a clone that was given the same key: --force");
}
}  // namespace

Result<std::vector<ssh::HostKey>> trust_host(const ssh::Target& target, const EnrollRequest& request, BootTime deadline,
                                             os::Clock& clock) {
  TRY_ASSIGN(const std::vector<ssh::HostKey> keys, ssh::scan_host_keys(target, deadline, clock));
  if (keys.empty())
    return make_error(Code::host_key_mismatch, "the host " + target.address() + " shows no host key that can be used");
  if (!request.host_key.empty()) {
    const ssh::HostKey* key = find_key(keys, request.host_key);
    if (key == nullptr) return wrong_key(target, request.host_key, keys);
    TRY(ssh::pin(target, {key, 1}));
    return keys;
  }
  const std::string accept = filled_in(request.accept_command, keys.front().fingerprint);
  TRY_ASSIGN(const std::vector<ssh::HostKey> pins, ssh::pinned(target));
  if (!pins.empty()) {
    const bool same = std::any_of(keys.begin(), keys.end(), [&](const ssh::HostKey& key) {
      return std::find(pins.begin(), pins.end(), key) != pins.end();
    });
    if (!same) return changed_key(target, pins, keys, accept);
    return keys;
  }
  // A host that ssh trusts is trusted here: known_hosts, or a certificate of an authority named there.
  if (const auto known = ssh::key_known_to_user(target, deadline, clock))
    if (const ssh::HostKey* key = find_key(keys, *known)) {
      TRY(ssh::pin(target, {key, 1}));
      return keys;
    }
  if (!request.ask || !request.ask(target.peer(), keys)) return unknown_key(target, keys, accept);
  TRY(ssh::pin(target, keys));
  return keys;
}

Result<void> pin_again(const registry::Provider& provider, const std::string& host_key, const Paths& paths,
                       BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const ssh::Target target, resolved(provider, paths));
  EnrollRequest request;
  request.host_key = host_key;
  TRY(trust_host(target, request, deadline, clock));
  return {};
}

Result<Twin> find_twin(const Inventory& found, std::span<const ssh::HostKey> keys,
                       const std::vector<registry::Provider>& others, const Paths& paths) {
  Twin twin;
  for (const registry::Provider& other : others) {
    const Result<ssh::Target> target = target_of(other, paths);
    if (!target) continue;  // its own trouble, e.g. a key file that is gone
    TRY_ASSIGN(const std::vector<ssh::HostKey> pins, ssh::pinned(*target));
    const bool shared = std::any_of(keys.begin(), keys.end(), [&](const ssh::HostKey& key) {
      return std::find(pins.begin(), pins.end(), key) != pins.end();
    });
    if (shared) return Twin{Twin::Kind::same_key, other};
    const bool kernel = !found.machine_id.empty() && found.machine_id == other.inventory->machine_id &&
                        !found.boot_id.empty() && found.boot_id == other.inventory->boot_id;
    if (kernel) twin = {Twin::Kind::same_kernel, other};
  }
  return twin;
}

Result<Examined> examine(registry::Provider provider, const Paths& paths, const ControllerId& controller,
                         BootTime deadline, os::Clock& clock, const UploadProgress& progress) {
  if (!is_lent(provider)) TRY(resolved(provider, paths));
  TRY_ASSIGN(AgentSession session, open_session(provider, paths, controller, deadline, clock, progress));
  provider.transport = ssh::transport_name(session.channel->transport());
  TRY_ASSIGN(
      provider.inventory,
      probe_host(std::move(session), deadline, clock).context("while taking the inventory of " + provider.name.value));
  sched::name_models(provider.inventory.edit());  // the catalogue is ours: what the host says of models is not believed
  provider.last_seen_at = clock.wall();
  provider.liveness = "answering";
  std::optional<EngineKind> wanted;
  if (Result<EngineKind> engine = parse_engine(provider.engine); engine) wanted = *engine;
  std::vector<probe::Finding> findings = probe::preflight(provider.inventory, wanted, clock.wall());
  return Examined{std::move(provider), std::move(findings), {}};
}

Result<Examined> enroll(const EnrollRequest& request, const Paths& paths, const ControllerId& controller,
                        BootTime deadline, os::Clock& clock) {
  registry::Provider provider = request.provider;
  provider.address = request.address;
  TRY_ASSIGN(const ssh::Target target, resolved(provider, paths));
  TRY_ASSIGN(const std::vector<ssh::HostKey> keys, trust_host(target, request, deadline, clock));
  TRY_ASSIGN(Examined examined, examine(addressed(std::move(provider), target, request.address), paths, controller,
                                        deadline, clock, request.progress));
  TRY_ASSIGN(const Twin twin, find_twin(examined.provider.inventory, keys, request.others, paths));
  if (twin.kind == Twin::Kind::same_key && !request.force) return same_machine(examined.provider, twin.provider);
  if (twin.kind != Twin::Kind::none) examined.shares_machine_with = twin.provider.name;
  return examined;
}

}  // namespace gridctl::control
