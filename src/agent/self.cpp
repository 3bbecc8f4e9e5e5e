// SPDX-License-Identifier: Apache-2.0
#include "agent/self.hpp"

#include "crypto/sha256.hpp"
#include "peer/identity.hpp"
#include "wire/peer.hpp"

namespace gridctl::agent {

std::string self_hash() {
  constexpr std::uint64_t k_binary_max = 64u << 20;
  const auto binary = os::read_file("/proc/self/exe", k_binary_max);
  return binary ? to_hex(crypto::sha256(as_bytes(*binary))) : std::string{};
}

void prove_identity(const os::Path& home, const Digest& nonce, wire::AgentHello& answer) {
  const Result<peer::Identity> identity = peer::Identity::open(home / "identity");
  if (!identity) return;
  answer.features.emplace_back(wire::k_peer_feature);
  answer.peer_key = identity->public_key();
  answer.peer_proof = to_hex(identity->sign(as_bytes(wire::peer_statement(nonce, answer.machine_id))));
}

}  // namespace gridctl::agent
