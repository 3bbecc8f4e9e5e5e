// SPDX-License-Identifier: Apache-2.0
// Which host answers: its identity, as pinned, and its machine id, where several ways lead to it.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "registry/records.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// The public key that the agent has proved to hold, in hexadecimal; empty when it claims none. What it claims and does
// not prove is protocol_violation.
[[nodiscard]] Result<std::string> proved_key(const wire::AgentHello& hello, const Digest& nonce);

// Refuses (host_key_mismatch) another host than the registered one. Without a pinned identity every one is accepted; by
// several ways the machine id must be the registered one, where both tell it.
[[nodiscard]] Result<void> check_peer(const registry::Provider& provider, const registry::Way& way,
                                      const wire::AgentHello& hello);

}  // namespace gridctl::control
