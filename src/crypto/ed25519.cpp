// SPDX-License-Identifier: Apache-2.0
#include "crypto/ed25519.hpp"

#include <openssl/evp.h>

#include "base/check.hpp"

namespace gridctl::crypto {

Digest ed25519_public(const Digest& seed) {
  EVP_PKEY* key = EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed.bytes.data()), seed.bytes.size());
  Digest out;
  std::size_t size = out.bytes.size();
  const bool made =
      key != nullptr &&
      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(out.bytes.data()), &size) == 1 &&
      size == out.bytes.size();
  EVP_PKEY_free(key);
  GRIDCTL_CHECK(made);
  return out;
}

}  // namespace gridctl::crypto
