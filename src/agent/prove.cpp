// SPDX-License-Identifier: Apache-2.0
#include "agent/prove.hpp"

#include "peer/identity.hpp"
#include "wire/peer.hpp"

namespace gridctl::agent {

void prove_identity(const os::Path& home, const Digest& nonce, wire::AgentHello& answer) {
  const Result<peer::Identity> identity = peer::Identity::open(home / "identity");
  if (!identity) return;
  answer.features.emplace_back(wire::k_peer_feature);
  answer.peer_key = identity->public_key();
  answer.peer_proof = to_hex(identity->sign(as_bytes(wire::peer_statement(nonce, answer.machine_id))));
}

}  // namespace gridctl::agent
