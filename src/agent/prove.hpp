// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "os/files.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

// Adds the proof of which host this is to the answer, whose machine id is signed, too. Without a key the answer stays as
// it is, and the controller decides what that means.
void prove_identity(const os::Path& home, const Digest& nonce, wire::AgentHello& answer);

}  // namespace gridctl::agent
