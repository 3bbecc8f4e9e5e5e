// SPDX-License-Identifier: Apache-2.0
#include "control/reach/host_keys.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "control/reach/connect_agent.hpp"
#include "ssh/known_hosts.hpp"

namespace gridctl::control {

namespace {
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
  const auto found = std::ranges::find(keys, fingerprint, &ssh::HostKey::fingerprint);
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
}  // namespace

Result<std::vector<ssh::HostKey>> trust_host(const ssh::Target& target, const TrustRequest& request, BootTime deadline,
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

Result<Trusted> trust_provider(registry::Provider provider, const TrustRequest& request, const Paths& paths,
                               BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const ssh::Target target, target_of(provider, paths));
  TRY_ASSIGN(std::vector<ssh::HostKey> keys, trust_host(target, request, deadline, clock));
  const std::string typed = provider.address;
  return Trusted{addressed(std::move(provider), target, typed), std::move(keys)};
}

Result<void> pin_again(const registry::Provider& provider, const std::string& host_key, const Paths& paths,
                       BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const ssh::Target target, target_of(provider, paths));
  TrustRequest request;
  request.host_key = host_key;
  TRY(trust_host(target, request, deadline, clock));
  return {};
}

Result<std::optional<std::vector<ssh::HostKey>>> pins_of(const registry::Provider& provider, const Paths& paths) {
  const Result<ssh::Target> target = target_of(provider, paths);
  if (!target) return std::optional<std::vector<ssh::HostKey>>{};
  TRY_ASSIGN(std::vector<ssh::HostKey> pins, ssh::pinned(*target));
  return std::optional(std::move(pins));
}

}  // namespace gridctl::control
