// SPDX-License-Identifier: Apache-2.0
// The key by which a host proves which host it is: Ed25519, made at the first start of an agent there, kept with the
// agent's files. Over libsodium; gridctl-agent(7), IDENTITY.
#pragma once

#include <array>
#include <cstddef>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::peer {

class Identity {
 public:
  // Reads the key in `file`, which is made when there is none. A file that holds anything else is state_unreadable and
  // stays as it is. `unsupported` in an agent that was built without libsodium.
  [[nodiscard]] static Result<Identity> open(const os::Path& file);
  [[nodiscard]] const Digest& public_key() const { return public_key_; }
  [[nodiscard]] std::array<std::byte, 64> sign(ByteView message) const;

 private:
  explicit Identity(const Digest& seed);
  std::array<std::byte, 64> secret_{};  // seed and public key, as libsodium has it
  Digest public_key_;
};

}  // namespace gridctl::peer
