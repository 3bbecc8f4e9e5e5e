// SPDX-License-Identifier: Apache-2.0
// Implements AES-256-GCM, and keys from passphrases, through OpenSSL's EVP, which is megabytes. A program that calls
// nothing of this links nothing of it, and the agent on hosts does not.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::crypto {

inline constexpr std::size_t k_gcm_key = 32, k_gcm_nonce = 12, k_gcm_tag = 16;  // bytes

// Writes the ciphertext and then the tag to `out`. REQUIRES: key and nonce of these sizes, never the same pair for two
// contents; out.size() == plain.size() + k_gcm_tag.
void gcm_seal(ByteView key, ByteView nonce, ByteView extra, ByteView plain, std::span<std::byte> out);
// Gives the same bytes, and has the same requirements: slower, but without EVP, for the agent on hosts.
void gcm_seal_small(ByteView key, ByteView nonce, ByteView extra, ByteView plain, std::span<std::byte> out);
// Returns false, with `plain` zeroed, unless key, nonce, extra and each byte of `sealed` are those of the sealing.
// REQUIRES: plain.size() + k_gcm_tag == sealed.size().
[[nodiscard]] bool gcm_open(ByteView key, ByteView nonce, ByteView extra, ByteView sealed, std::span<std::byte> plain);

// Holds the cost of scrypt (RFC 7914): 2^log2_n * r * 128 bytes of memory.
struct ScryptCost {
  unsigned log2_n = 17, r = 8, p = 1;
  bool operator==(const ScryptCost&) const = default;
};
inline constexpr unsigned k_scrypt_log2_n_max = 20;  // 1 GiB: more is somebody's attempt to use up our memory
// Derives a key. Fails with unsupported beyond the limits.
[[nodiscard]] Result<Digest> scrypt(std::string_view passphrase, ByteView salt, const ScryptCost& cost);

}  // namespace gridctl::crypto
