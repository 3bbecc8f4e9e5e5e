// SPDX-License-Identifier: Apache-2.0
#include "control/reach/peer.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "crypto/ed25519.hpp"
#include "wire/peer.hpp"

namespace gridctl::control {

namespace {
std::string accepting(const registry::Provider& provider, const std::string& met) {
  return "if it was reinstalled: gridctl provider check " + provider.name.value + " --accept-identity " +
         (met.empty() ? "none" : met);
}

Error another_host(const registry::Provider& provider, const registry::Way& way, const std::string& met) {
  return make_error(Code::host_key_mismatch,
                    "another host answers at " + way.address + ": " +
                        (met.empty() ? "it proves no identity" : "its identity is " + met) + ", that of " +
                        provider.name.value + " is " + provider.peer_key,
                    accepting(provider, met));
}

Error another_machine(const registry::Provider& provider, const registry::Way& way, const wire::AgentHello& hello,
                      const std::string& met) {
  return make_error(Code::host_key_mismatch,
                    "another machine answers at " + way.address + ": its machine id is " +
                        sanitize(hello.machine_id, 64) + ", that of " + provider.name.value + " is " +
                        sanitize(provider.inventory->machine_id, 64),
                    "gridctl provider way " + provider.name.value + " " + shell_quote(way.address) + " --rm; " +
                        accepting(provider, met));
}
}  // namespace

Result<std::string> proved_key(const wire::AgentHello& hello, const Digest& nonce) {
  if (!hello.peer_key) return std::string();
  constexpr std::size_t k_half = 2 * sizeof(Digest::bytes);  // digits
  const std::string_view proof = hello.peer_proof;
  const Result<Digest> first = parse_digest(proof.substr(0, k_half));
  const Result<Digest> second = parse_digest(proof.substr(std::min(proof.size(), k_half)));
  if (first && second) {
    crypto::Signature signature{};
    std::ranges::copy(second->bytes, std::ranges::copy(first->bytes, signature.begin()).out);
    if (crypto::ed25519_verifies(*hello.peer_key, as_bytes(wire::peer_statement(nonce, hello.machine_id)), signature))
      return to_hex(*hello.peer_key);
  }
  return make_error(Code::protocol_violation, "it claims the identity " + to_hex(*hello.peer_key) + " and does not prove it");
}

Result<void> check_peer(const registry::Provider& provider, const registry::Way& way, const wire::AgentHello& hello) {
  const std::string met = hello.peer_key ? to_hex(*hello.peer_key) : "";
  if (!provider.peer_key.empty() && met != provider.peer_key) return another_host(provider, way, met);
  const std::string& known = provider.inventory->machine_id;
  if (provider.more_ways.empty() || known.empty() || hello.machine_id.empty() || known == hello.machine_id) return {};
  return another_machine(provider, way, hello, met);
}

}  // namespace gridctl::control
