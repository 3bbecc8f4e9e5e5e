// SPDX-License-Identifier: Apache-2.0
// Implements the exchange of two hosts over a connection of a few seconds: first both prove that they have the token,
// then each in turn measures round trips and its sending rate. gridctl-agent(7), BETWEEN HOSTS.
#pragma once

#include <optional>

#include "agent/peer_socket.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::agent {

// Before the other side has proved itself, it is sent 24 bytes (connector) or 48 (listener). protocol_violation if it
// does not have the token.
[[nodiscard]] Result<void> prove_as_connector(PeerStream& peer, const Digest& token);
[[nodiscard]] Result<void> prove_as_listener(PeerStream& peer, const Digest& token);

// Implements the listener's side in steps, for a caller that serves many at once and must not wait for one: bytes in,
// bytes out.
class ListenerProof {
 public:
  explicit ListenerProof(const Digest& token) : token_(token) {}
  [[nodiscard]] std::size_t wants() const;  // bytes, no more of which may be read; 0: the other side has proved itself
  // Takes at most this many bytes; adds what is to be sent.
  [[nodiscard]] Result<void> take(ByteView bytes, Bytes& answer);

 private:
  Digest token_;
  Bytes heard_, own_nonce_;
};

struct Driven {
  Duration rtt{};  // smallest
  std::optional<double> bits_per_second;
  std::uint64_t bytes = 0;
};
// Measures; the other side must follow() meanwhile. Sends at most `bytes_max` (none if 0) for `time_max`.
[[nodiscard]] Result<Driven> drive(PeerStream& peer, std::uint64_t bytes_max, Duration time_max);
// Answers a drive() of the other side; returns the number of bytes received. Takes no more than `bytes_max`.
[[nodiscard]] Result<std::uint64_t> follow(PeerStream& peer, std::uint64_t bytes_max);

}  // namespace gridctl::agent
