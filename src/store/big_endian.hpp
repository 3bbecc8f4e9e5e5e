// SPDX-License-Identifier: Apache-2.0
// Reads and writes integers and byte runs of the store's formats. A Reader never reads past its end: it turns bad
// instead.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace gridctl::store {

// Returns the error for damaged bytes.
[[nodiscard]] inline Error damaged(std::string message) { return make_error(Code::checkpoint_damaged, std::move(message)); }

template <std::unsigned_integral T>
void put_big_endian(Bytes& out, T value) {
  for (std::size_t i = sizeof(T); i-- > 0;) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
inline void put_bytes(Bytes& out, ByteView bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

// Returns the first bytes, then zeros if there are fewer.
template <std::size_t n>
std::array<std::byte, n> first_bytes(ByteView bytes) {
  std::array<std::byte, n> out{};
  std::copy_n(bytes.begin(), std::min(n, bytes.size()), out.begin());
  return out;
}

class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

  ByteView bytes(std::size_t count) {
    if (!good_ || rest_.size() < count) {
      good_ = false;
      return {};
    }
    const ByteView taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  template <std::unsigned_integral T>
  T number() {
    std::uint64_t value = 0;
    for (const std::byte byte : bytes(sizeof(T))) value = value << 8 | static_cast<std::uint64_t>(byte);
    return static_cast<T>(value);
  }
  Digest digest() { return {first_bytes<32>(bytes(32))}; }

 private:
  ByteView rest_;
  bool good_ = true;
};

}  // namespace gridctl::store
