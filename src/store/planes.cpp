// SPDX-License-Identifier: Apache-2.0
// Plain loops that the compiler turns into vector code (built with -O3).
#include "store/planes.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

#include "base/check.hpp"

namespace gridctl::store {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's elements are little-endian");

constexpr std::size_t k_block = 512;  // elements: planes of one block stay in the first-level cache

template <std::unsigned_integral T>
void split(const std::byte* in, std::size_t count, std::byte* out) {
  T rotated[k_block];
  for (std::size_t begin = 0; begin < count; begin += k_block) {
    const std::size_t n = count - begin < k_block ? count - begin : k_block;
    std::memcpy(rotated, in + begin * sizeof(T), n * sizeof(T));
    for (std::size_t i = 0; i < n; ++i) rotated[i] = std::rotl(rotated[i], 1);
    for (std::size_t plane = 0; plane < sizeof(T); ++plane) {
      const unsigned shift = 8 * static_cast<unsigned>(sizeof(T) - 1 - plane);
      std::byte* const to = out + plane * count + begin;
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(rotated[i] >> shift);
    }
  }
}

template <std::unsigned_integral T>
void join(const std::byte* const* planes, std::size_t count, std::byte* out) {
  T rotated[k_block];
  for (std::size_t begin = 0; begin < count; begin += k_block) {
    const std::size_t n = count - begin < k_block ? count - begin : k_block;
    for (std::size_t i = 0; i < n; ++i) rotated[i] = 0;
    for (std::size_t plane = 0; plane < sizeof(T); ++plane) {
      const unsigned shift = 8 * static_cast<unsigned>(sizeof(T) - 1 - plane);
      const std::byte* const from = planes[plane] + begin;
      for (std::size_t i = 0; i < n; ++i)
        rotated[i] = static_cast<T>(rotated[i] | static_cast<T>(static_cast<T>(from[i]) << shift));
    }
    for (std::size_t i = 0; i < n; ++i) rotated[i] = std::rotr(rotated[i], 1);
    std::memcpy(out + begin * sizeof(T), rotated, n * sizeof(T));
  }
}

}  // namespace

void split_planes(ByteView plain, std::size_t width, std::span<std::byte> planes) {
  GRIDCTL_CHECK((width == 2 || width == 4 || width == 8) && plain.size() % width == 0 && planes.size() == plain.size());
  const std::size_t count = plain.size() / width;
  if (width == 2) return split<std::uint16_t>(plain.data(), count, planes.data());
  if (width == 4) return split<std::uint32_t>(plain.data(), count, planes.data());
  split<std::uint64_t>(plain.data(), count, planes.data());
}

void xor_into(std::span<std::byte> bytes, ByteView other) {
  GRIDCTL_CHECK(bytes.size() == other.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] ^= other[i];
}

void join_planes(std::span<const std::byte* const> planes, std::span<std::byte> plain) {
  const std::size_t width = planes.size(), count = plain.size() / width;
  GRIDCTL_CHECK((width == 2 || width == 4 || width == 8) && plain.size() % width == 0);
  if (width == 2) return join<std::uint16_t>(planes.data(), count, plain.data());
  if (width == 4) return join<std::uint32_t>(planes.data(), count, plain.data());
  join<std::uint64_t>(planes.data(), count, plain.data());
}

}  // namespace gridctl::store
