// SPDX-License-Identifier: Apache-2.0
// Defines byte spans, digests and sizes.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

[[nodiscard]] inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}
[[nodiscard]] inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Holds a SHA-256 value: content hash of a chunk, root of a tree.
struct Digest {
  std::array<std::byte, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
};

[[nodiscard]] inline bool all_zero(ByteView bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Writes and reads a number of four bytes, the most significant first.
void append_number(std::string& to, std::uint32_t value);
[[nodiscard]] std::uint32_t number_at(std::string_view bytes, std::size_t at);

[[nodiscard]] std::string to_hex(ByteView bytes);
[[nodiscard]] inline std::string to_hex(const Digest& digest) { return to_hex(ByteView{digest.bytes}); }
[[nodiscard]] std::optional<Bytes> parse_hex(std::string_view hex);  // pairs of lower-case digits
// Accepts exactly 64 lower-case hexadecimal digits.
[[nodiscard]] Result<Digest> parse_digest(std::string_view hex);

// Parses "512", "16GiB", "40GB", "1.5TB", "64k" into bytes. k/M/G/T with or without B are powers of 1000; Ki/Mi/Gi/Ti
// of 1024.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
// Returns text such as "1.5 GiB", "812 KiB", "97 B".
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace gridctl

template <>
struct std::hash<gridctl::Digest> {
  std::size_t operator()(const gridctl::Digest& digest) const noexcept {
    std::size_t value = 0;  // a digest is uniform already: its first bytes do
    for (std::size_t i = 0; i < sizeof value; ++i) value = value << 8 | static_cast<std::size_t>(digest.bytes[i]);
    return value;
  }
};
