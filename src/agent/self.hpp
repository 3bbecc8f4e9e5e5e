// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "os/files.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

// Returns the SHA-256 of the running binary in hex; empty if it cannot be read.
[[nodiscard]] std::string self_hash();

// Adds the proof of which host this is to the answer, whose machine id is signed, too. Without a key the answer stays as
// it is, and the controller decides what that means.
void prove_identity(const os::Path& home, const Digest& nonce, wire::AgentHello& answer);

}  // namespace gridctl::agent
