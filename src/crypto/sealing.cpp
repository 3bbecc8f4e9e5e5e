// SPDX-License-Identifier: Apache-2.0
#include "crypto/sealing.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>

#include "base/check.hpp"

namespace gridctl::crypto {
namespace {

struct Free {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
};

// Fetches the cipher once, because a look-up by name costs more than sealing a small chunk.
const EVP_CIPHER* aes_256_gcm() {
  static const std::unique_ptr<EVP_CIPHER, Free> cipher(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr));
  return cipher.get();
}

EVP_CIPHER_CTX* context() {
  thread_local const std::unique_ptr<EVP_CIPHER_CTX, Free> context(EVP_CIPHER_CTX_new());
  GRIDCTL_CHECK(context);
  return context.get();
}

const unsigned char* raw(ByteView bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw_to(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }
int length(std::size_t size) {
  GRIDCTL_CHECK(size <= INT_MAX);
  return static_cast<int>(size);
}

// Does everything up to the tag.
void run(EVP_CIPHER_CTX* to, bool sealing, ByteView key, ByteView nonce, ByteView extra, ByteView in,
         std::span<std::byte> out) {
  GRIDCTL_CHECK(key.size() == k_gcm_key && nonce.size() == k_gcm_nonce && in.size() == out.size());
  int done = 0;
  GRIDCTL_CHECK(EVP_CipherInit_ex(to, aes_256_gcm(), nullptr, raw(key), raw(nonce), sealing ? 1 : 0) == 1);
  GRIDCTL_CHECK(EVP_CipherUpdate(to, nullptr, &done, raw(extra), length(extra.size())) == 1);
  if (!in.empty()) GRIDCTL_CHECK(EVP_CipherUpdate(to, raw_to(out), &done, raw(in), length(in.size())) == 1);
}

}  // namespace

void gcm_seal(ByteView key, ByteView nonce, ByteView extra, ByteView plain, std::span<std::byte> out) {
  GRIDCTL_CHECK(out.size() == plain.size() + k_gcm_tag);
  EVP_CIPHER_CTX* const to = context();
  run(to, true, key, nonce, extra, plain, out.first(plain.size()));
  int done = 0;
  GRIDCTL_CHECK(EVP_CipherFinal_ex(to, raw_to(out.last(k_gcm_tag)), &done) == 1);
  GRIDCTL_CHECK(EVP_CIPHER_CTX_ctrl(to, EVP_CTRL_AEAD_GET_TAG, k_gcm_tag, raw_to(out.last(k_gcm_tag))) == 1);
}

bool gcm_open(ByteView key, ByteView nonce, ByteView extra, ByteView sealed, std::span<std::byte> plain) {
  GRIDCTL_CHECK(plain.size() + k_gcm_tag == sealed.size());
  EVP_CIPHER_CTX* const to = context();
  run(to, false, key, nonce, extra, sealed.first(plain.size()), plain);
  std::array<std::byte, k_gcm_tag> tag{}, rest{};
  std::copy(sealed.end() - k_gcm_tag, sealed.end(), tag.begin());
  int done = 0;
  GRIDCTL_CHECK(EVP_CIPHER_CTX_ctrl(to, EVP_CTRL_AEAD_SET_TAG, k_gcm_tag, tag.data()) == 1);
  if (EVP_CipherFinal_ex(to, raw_to(std::span(rest)), &done) == 1) return true;
  std::ranges::fill(plain, std::byte{0});
  return false;
}

Result<Digest> scrypt(std::string_view passphrase, ByteView salt, const ScryptCost& cost) {
  if (cost.log2_n < 1 || cost.log2_n > k_scrypt_log2_n_max || cost.r < 1 || cost.r > 8 || cost.p < 1 || cost.p > 16)
    return make_error(Code::unsupported, "the passphrase protection has a cost that this gridctl does not support");
  const std::uint64_t n = 1ull << cost.log2_n;
  const std::uint64_t memory = n * cost.r * 128 + (2ull << 20);
  Digest key;
  if (EVP_PBE_scrypt(passphrase.data(), passphrase.size(), raw(salt), salt.size(), n, cost.r, cost.p, memory,
                     raw_to(std::span(key.bytes)), key.bytes.size()) != 1)
    return make_error(Code::internal, "the key could not be derived from the passphrase");
  return key;
}

}  // namespace gridctl::crypto
