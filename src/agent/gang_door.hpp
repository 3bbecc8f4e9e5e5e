// SPDX-License-Identifier: Apache-2.0
// Accepts a gang's members: anyone on the network can connect, but only those with the token get further. One process
// and bounded memory serve any number of unknown peers; none of them can delay a member.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "agent/peer_exchange.hpp"
#include "agent/peer_socket.hpp"

namespace gridctl::agent {

class GangDoor {
 public:
  GangDoor(PeerListener listener, const Digest& token, const os::Clock& clock)
      : listener_(std::move(listener)), token_(token), clock_(clock) {}

  // Returns the next caller that has proved itself; nullopt if none did before the deadline.
  [[nodiscard]] Result<std::optional<PeerStream>> next(BootTime deadline);
  [[nodiscard]] std::size_t strangers() const { return strangers_.size(); }

 private:
  struct Stranger {
    PeerStream peer;
    ListenerProof proof;
    BootTime until;
  };
  enum class Heard { waits, proved, gone };

  [[nodiscard]] Result<void> let_in();
  void make_room();
  [[nodiscard]] static Heard hear(Stranger& stranger);

  PeerListener listener_;
  Digest token_;
  const os::Clock& clock_;
  std::vector<Stranger> strangers_;  // in the order in which they came
};

}  // namespace gridctl::agent
