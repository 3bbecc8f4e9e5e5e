// SPDX-License-Identifier: Apache-2.0
#include "crypto/sealing.hpp"

// Uses the deprecated functions, like SHA-256: OpenSSL 3's replacement is megabytes.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/aes.h>
#include <openssl/crypto.h>
#include <openssl/modes.h>

#include <memory>

#include "base/check.hpp"

namespace gridctl::crypto {
namespace {

struct Release {
  void operator()(GCM128_CONTEXT* context) const { CRYPTO_gcm128_release(context); }
};

const unsigned char* bytes_of(ByteView bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* bytes_of(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

void encrypt_block(const unsigned char in[16], unsigned char out[16], const void* key) {
  AES_encrypt(in, out, static_cast<const AES_KEY*>(key));
}

}  // namespace

void gcm_seal_small(ByteView key, ByteView nonce, ByteView extra, ByteView plain, std::span<std::byte> out) {
  GRIDCTL_CHECK(key.size() == k_gcm_key && nonce.size() == k_gcm_nonce && out.size() == plain.size() + k_gcm_tag);
  AES_KEY schedule;
  GRIDCTL_CHECK(AES_set_encrypt_key(bytes_of(key), 256, &schedule) == 0);
  const std::unique_ptr<GCM128_CONTEXT, Release> context(CRYPTO_gcm128_new(&schedule, &encrypt_block));
  GRIDCTL_CHECK(context);
  CRYPTO_gcm128_setiv(context.get(), bytes_of(nonce), nonce.size());
  GRIDCTL_CHECK(CRYPTO_gcm128_aad(context.get(), bytes_of(extra), extra.size()) == 0);
  GRIDCTL_CHECK(CRYPTO_gcm128_encrypt(context.get(), bytes_of(plain), bytes_of(out), plain.size()) == 0);
  CRYPTO_gcm128_tag(context.get(), bytes_of(out.last(k_gcm_tag)), k_gcm_tag);
  OPENSSL_cleanse(&schedule, sizeof schedule);
}

}  // namespace gridctl::crypto
