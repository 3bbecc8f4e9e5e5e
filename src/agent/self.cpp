// SPDX-License-Identifier: Apache-2.0
#include "agent/self.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "crypto/sha256.hpp"
#include "peer/identity.hpp"
#include "wire/peer.hpp"

namespace gridctl::agent {

// Reads in pieces: every login does this, and fresh memory for the whole program would cost more than its hash.
std::string self_hash() {
  const auto binary = os::open_file("/proc/self/exe", O_RDONLY);
  struct stat info {};
  if (!binary || ::fstat(binary->get(), &info) != 0) return {};
  crypto::Sha256 hash;
  std::vector<std::byte> piece(std::size_t{128} * 1024);
  for (std::uint64_t at = 0, size = static_cast<std::uint64_t>(info.st_size); at < size;) {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), size - at);
    if (!os::read_exactly(binary->get(), piece.data(), count, at)) return {};
    hash.update({piece.data(), count});
    at += count;
  }
  return to_hex(hash.finish());
}

void prove_identity(const os::Path& home, const Digest& nonce, wire::AgentHello& answer) {
  const Result<peer::Identity> identity = peer::Identity::open(home / "identity");
  if (!identity) return;
  answer.features.emplace_back(wire::k_peer_feature);
  answer.peer_key = identity->public_key();
  answer.peer_proof = to_hex(identity->sign(as_bytes(wire::peer_statement(nonce, answer.machine_id))));
}

}  // namespace gridctl::agent
