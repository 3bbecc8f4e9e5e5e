// SPDX-License-Identifier: Apache-2.0
// Uses plain loops that the compiler turns into vector code (built with -O3).
#include "store/planes.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace gridctl::store {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's elements are little-endian");

constexpr std::size_t k_block = 512;  // elements: planes of one block stay in the first-level cache

template <std::unsigned_integral T>
[[gnu::always_inline]] inline void split(const std::byte* in, std::size_t count, std::byte* out) {
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

template <std::unsigned_integral T, std::size_t... Plane>
[[gnu::always_inline]] inline void join(const std::byte* const* planes, std::size_t count, std::byte* out,
                                        std::index_sequence<Plane...>) {
  T elements[k_block];
  for (std::size_t begin = 0; begin < count; begin += k_block) {
    const std::size_t n = count - begin < k_block ? count - begin : k_block;
    const std::byte* const from[] = {planes[Plane] + begin...};
    for (std::size_t i = 0; i < n; ++i) {
      const T rotated =
          static_cast<T>((... | static_cast<T>(static_cast<T>(from[Plane][i]) << 8 * (sizeof(T) - 1 - Plane))));
      elements[i] = std::rotr(rotated, 1);
    }
    std::memcpy(out + begin * sizeof(T), elements, n * sizeof(T));
  }
}

template <std::unsigned_integral T>
[[gnu::always_inline]] inline void join(const std::byte* const* planes, std::size_t count, std::byte* out) {
  join<T>(planes, count, out, std::make_index_sequence<sizeof(T)>());
}

[[gnu::always_inline]] inline void split_any(ByteView plain, std::size_t width, std::byte* planes) {
  const std::size_t count = plain.size() / width;
  if (width == 2) return split<std::uint16_t>(plain.data(), count, planes);
  if (width == 4) return split<std::uint32_t>(plain.data(), count, planes);
  split<std::uint64_t>(plain.data(), count, planes);
}

[[gnu::always_inline]] inline void join_any(std::span<const std::byte* const> planes, std::span<std::byte> plain) {
  const std::size_t count = plain.size() / planes.size();
  if (planes.size() == 2) return join<std::uint16_t>(planes.data(), count, plain.data());
  if (planes.size() == 4) return join<std::uint32_t>(planes.data(), count, plain.data());
  join<std::uint64_t>(planes.data(), count, plain.data());
}

// These loops use the registers of newer processors, which is twice as fast.
#if defined(__x86_64__)
#define GRIDCTL_WIDE [[gnu::target("avx2")]]
bool has_wide() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#else
#define GRIDCTL_WIDE
constexpr bool has_wide() { return false; }
#endif
GRIDCTL_WIDE void split_wide(ByteView plain, std::size_t width, std::byte* planes) { split_any(plain, width, planes); }
GRIDCTL_WIDE void join_wide(std::span<const std::byte* const> planes, std::span<std::byte> plain) {
  join_any(planes, plain);
}

}  // namespace

void split_planes(ByteView plain, std::size_t width, std::span<std::byte> planes) {
  GRIDCTL_CHECK((width == 2 || width == 4 || width == 8) && plain.size() % width == 0 && planes.size() == plain.size());
  has_wide() ? split_wide(plain, width, planes.data()) : split_any(plain, width, planes.data());
}

void join_planes(std::span<const std::byte* const> planes, std::span<std::byte> plain) {
  const std::size_t width = planes.size();
  GRIDCTL_CHECK((width == 2 || width == 4 || width == 8) && plain.size() % width == 0);
  has_wide() ? join_wide(planes, plain) : join_any(planes, plain);
}

void xor_into(std::span<std::byte> bytes, ByteView other) {
  GRIDCTL_CHECK(bytes.size() == other.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] ^= other[i];
}

}  // namespace gridctl::store
