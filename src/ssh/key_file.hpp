// SPDX-License-Identifier: Apache-2.0
// Finds the kind of a private key file without unlocking it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::ssh {

struct KeyFacts {
  std::string type;         // "ssh-ed25519", "ssh-rsa"…; empty when the format does not tell (PKCS#8)
  std::string public_blob;  // raw; empty when the format does not tell
  bool encrypted = false;
  bool has_certificate = false;  // FILE-cert.pub lies beside it: libssh2 1.10 cannot present it
};
// Code::io or not_found if unreadable, unsupported if it is not a private key.
[[nodiscard]] Result<KeyFacts> inspect_key(const os::Path& path);

// Returns true for user keys that libssh2 1.10 can sign with: Ed25519 and ECDSA. It signs RSA only with SHA-1, which
// servers refuse.
[[nodiscard]] bool libssh2_signs_with(const std::string& type);

}  // namespace gridctl::ssh
