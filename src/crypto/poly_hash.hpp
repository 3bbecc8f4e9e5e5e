// SPDX-License-Identifier: Apache-2.0
// Implements a keyed hash that is several times as fast as SHA-256: the content as a polynomial over GF(2^128) at a
// secret point (the hash inside GCM: NIST SP 800-38D, section 6.4; here without its reflection of bits). It shows
// whether a content is the one seen before to a program that keeps both the key and the hashes secret; it is not a name
// for a content.
#pragma once

#include <array>
#include <cstddef>

#include "base/bytes.hpp"

namespace gridctl::crypto {

using PolyValue = std::array<std::byte, 16>;

// Hashes with one key. Threads may share one object.
class PolyHash {
 public:
  // Returns whether this processor multiplies without carries (x86-64 with PCLMULQDQ); otherwise the other functions
  // must not be called.
  [[nodiscard]] static bool is_supported();

  // Sets the point, which should be 16 random bytes.
  explicit PolyHash(const PolyValue& key);

  // Returns the hash of `content`. Two different contents of at most n bytes, chosen without knowledge of the key or of
  // any hash, have equal hashes with a probability of at most (n / 16 + 2) / 2^128: under 2^-109 for 4 MiB (Carter and
  // Wegman, "Universal classes of hash functions", 1979; the degree of a polynomial bounds its roots).
  [[nodiscard]] PolyValue of(ByteView content) const;

 private:
  static constexpr std::size_t k_powers = 16;  // blocks that the widest path takes at once
  // Holds the key's powers, the highest first, aligned for the widest registers.
  alignas(64) std::array<PolyValue, k_powers> powers_;
};

}  // namespace gridctl::crypto
