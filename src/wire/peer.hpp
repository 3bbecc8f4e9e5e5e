// SPDX-License-Identifier: Apache-2.0
// The proof of which host answers: its agent signs what the controller has just made up. gridctl-agent(7), IDENTITY.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_peer_feature = "peer";  // the agent has proved its identity in this hello

// The bytes that are signed.
[[nodiscard]] inline std::string peer_statement(const Digest& nonce, std::string_view machine_id) {
  return "gridctl peer 1\n" + to_hex(nonce) + "\n" + std::string(machine_id) + "\n";
}

}  // namespace gridctl::wire
