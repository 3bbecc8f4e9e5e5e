// SPDX-License-Identifier: Apache-2.0
#include "lend/keys.hpp"

#include "crypto/ed25519.hpp"
#include "crypto/sha256.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::lend {

namespace {

constexpr std::string_view k_type = "ssh-ed25519";
constexpr std::size_t k_block = 8;  // the private part is padded to it (OpenSSH's PROTOCOL.key)
constexpr std::size_t k_line = 70;

Digest derived(const Digest& secret, std::string_view purpose) {
  return crypto::hkdf_expand(crypto::HmacKey(secret.bytes), as_bytes(purpose));
}

}  // namespace

LoginKey login_key(const Digest& secret) {
  const Digest seed = derived(secret, "gridctl-lend login");
  const Digest open = crypto::ed25519_public(seed);
  const std::string public_bytes(as_text(open.bytes)), seed_bytes(as_text(seed.bytes));
  std::string blob;
  ssh::append_text(blob, k_type);
  ssh::append_text(blob, public_bytes);

  std::string hidden;
  for (int twice = 0; twice < 2; ++twice) append_number(hidden, 0);  // tells a wrong passphrase; there is none
  ssh::append_text(hidden, k_type);
  ssh::append_text(hidden, public_bytes);
  ssh::append_text(hidden, seed_bytes + public_bytes);
  ssh::append_text(hidden, "");
  for (char pad = 1; hidden.size() % k_block != 0; ++pad) hidden += pad;

  std::string file("openssh-key-v1\0", 15);
  ssh::append_text(file, "none");
  ssh::append_text(file, "none");
  ssh::append_text(file, "");
  append_number(file, 1);
  ssh::append_text(file, blob);
  ssh::append_text(file, hidden);
  const std::string encoded = ssh::encode_base64(file);
  std::string text = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  for (std::size_t at = 0; at < encoded.size(); at += k_line) text += encoded.substr(at, k_line) + "\n";
  return {ssh::encode_base64(blob), text + "-----END OPENSSH PRIVATE KEY-----\n"};
}

ssh::SealedWith sealing(crypto::TlsSide side, const Digest& secret, const std::string& id) {
  return {side, derived(secret, "gridctl-lend session"), id};
}

Digest session_secret(const Digest& researchers_part, const Digest& machines_part) {
  return crypto::HmacKey(researchers_part.bytes).of(machines_part.bytes);
}

std::string session_identity(const std::string& id) { return id + ".s"; }

Digest token_tag(const Digest& secret, ByteView body) {
  return crypto::HmacKey(derived(secret, "gridctl-lend token").bytes).of(body);
}

}  // namespace gridctl::lend
