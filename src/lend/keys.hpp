// SPDX-License-Identifier: Apache-2.0
// The keys that come from the secret of an invitation.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "crypto/tls_stream.hpp"
#include "ssh/sealed_channel.hpp"

namespace gridctl::lend {

struct LoginKey {
  std::string public_blob;   // base64, as in authorized_keys
  std::string private_file;  // text of an OpenSSH private key file, without a passphrase
};
// The key by which the lent machine logs in to the relay.
[[nodiscard]] LoginKey login_key(const Digest& secret);
// The two ends' own connection, which the relay cannot read.
[[nodiscard]] ssh::SealedWith sealing(crypto::TlsSide side, const Digest& secret, const std::string& id);
// Returns the secret that takes the place of the token's, from what both ends have drawn.
[[nodiscard]] Digest session_secret(const Digest& researchers_part, const Digest& machines_part);
[[nodiscard]] std::string session_identity(const std::string& id);
// Shows that a token is whole.
[[nodiscard]] Digest token_tag(const Digest& secret, ByteView body);

}  // namespace gridctl::lend
