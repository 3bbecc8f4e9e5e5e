// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC-SHA-256.
#pragma once

#include <array>

#include "base/bytes.hpp"

namespace gridctl::crypto {

// Streaming SHA-256. A value: a copy goes on from the same state.
class Sha256 {
 public:
  Sha256();
  Sha256& update(ByteView bytes);
  // Returns the digest and begins anew.
  [[nodiscard]] Digest finish();

 private:
  alignas(8) std::array<std::byte, 112> state_;  // a SHA256_CTX; OpenSSL's headers stay out of ours
};

[[nodiscard]] Digest sha256(ByteView bytes);
[[nodiscard]] Digest hmac_sha256(ByteView key, ByteView message);

// Equality in a time that depends on the length alone.
[[nodiscard]] bool equal_constant_time(ByteView a, ByteView b);

}  // namespace gridctl::crypto
