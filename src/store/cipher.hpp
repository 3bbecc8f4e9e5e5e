// SPDX-License-Identifier: Apache-2.0
// Declares the operations that a store needs from its key. An interface, so that programs that never have a key do not
// link the cipher.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"

namespace gridctl::store {

inline constexpr std::string_view k_blob_label = "gridctl/chunk/1";  // of what is derived and sealed for blobs
inline constexpr std::size_t k_sealing_bytes = 28;  // what sealing adds to a blob: nonce and tag

// Identifies a store key without revealing it. Zero: none.
struct KeyId {
  std::array<std::byte, 16> bytes{};
  auto operator<=>(const KeyId&) const = default;
  explicit operator bool() const { return *this != KeyId{}; }
};

// Threads may share one instance.
class Cipher {
 public:
  virtual ~Cipher() = default;
  [[nodiscard]] virtual KeyId id() const = 0;
  // Returns the id under which a store keeps the blob with this digest.
  [[nodiscard]] virtual Digest storage_id(const Digest& digest) const = 0;
  // Returns k_sealing_bytes more than `encoded`, and a different result each time.
  [[nodiscard]] virtual Bytes seal(const Digest& id, std::uint32_t plain_length, ByteView encoded) const = 0;
  // Returns nullopt unless `sealed` was made for this id and length with this key.
  [[nodiscard]] virtual std::optional<Bytes> open(const Digest& id, std::uint32_t plain_length,
                                                  ByteView sealed) const = 0;
};

}  // namespace gridctl::store
