// SPDX-License-Identifier: Apache-2.0
#include "crypto/ed25519.hpp"

#include <openssl/evp.h>

#include <memory>

#include "base/check.hpp"

namespace gridctl::crypto {

namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const unsigned char* octets(ByteView bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

Key private_key(const Digest& seed) {
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, octets(seed.bytes), seed.bytes.size()));
}

}  // namespace

Digest ed25519_public(const Digest& seed) {
  const Key key = private_key(seed);
  Digest out;
  std::size_t size = out.bytes.size();
  const bool made =
      key != nullptr &&
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(out.bytes.data()), &size) == 1 &&
      size == out.bytes.size();
  GRIDCTL_CHECK(made);
  return out;
}

Signature ed25519_sign(const Digest& seed, ByteView message) {
  const Key key = private_key(seed);
  const Context context(EVP_MD_CTX_new());
  Signature out{};
  std::size_t size = out.size();
  const bool made = key != nullptr && context != nullptr &&
                    EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size, octets(message), message.size()) == 1 &&
                    size == out.size();
  GRIDCTL_CHECK(made);
  return out;
}

bool ed25519_verifies(const Digest& public_key, ByteView message, const Signature& signature) {
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, octets(public_key.bytes), public_key.bytes.size()));
  const Context context(EVP_MD_CTX_new());
  return key != nullptr && context != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), octets(signature), signature.size(), octets(message), message.size()) == 1;
}

}  // namespace gridctl::crypto
