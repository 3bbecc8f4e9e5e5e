// SPDX-License-Identifier: Apache-2.0
#include "crypto/poly_hash.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)

#include <immintrin.h>

namespace gridctl::crypto {
namespace {

constexpr std::size_t k_element = 16;  // bytes
constexpr long long k_modulus = 0x87;  // x^128 = x^7 + x^2 + x + 1

// Holds a product of 255 bits as the sums of its three partial products: low, middle (to be added 64 bits up), high.
struct Product {
  __m128i low, middle, high;
};

[[gnu::target("pclmul,sse2")]] inline void add_product(Product& to, __m128i a, __m128i b) {
  to.low = _mm_xor_si128(to.low, _mm_clmulepi64_si128(a, b, 0x00));
  to.middle = _mm_xor_si128(to.middle, _mm_clmulepi64_si128(a, b, 0x01));
  to.middle = _mm_xor_si128(to.middle, _mm_clmulepi64_si128(a, b, 0x10));
  to.high = _mm_xor_si128(to.high, _mm_clmulepi64_si128(a, b, 0x11));
}

[[gnu::target("pclmul,sse2")]] inline __m128i reduce(const Product& product) {
  const __m128i modulus = _mm_cvtsi64_si128(k_modulus);
  __m128i low = _mm_xor_si128(product.low, _mm_slli_si128(product.middle, 8));
  __m128i high = _mm_xor_si128(product.high, _mm_srli_si128(product.middle, 8));
  const __m128i upper = _mm_clmulepi64_si128(high, modulus, 0x01);
  low = _mm_xor_si128(low, _mm_slli_si128(upper, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(upper, 8));
  return _mm_xor_si128(low, _mm_clmulepi64_si128(high, modulus, 0x00));
}

[[gnu::target("pclmul,sse2")]] inline __m128i times(__m128i a, __m128i b) {
  Product product{};
  add_product(product, a, b);
  return reduce(product);
}

inline __m128i load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

// Uses Horner's scheme, with `k_at_once` blocks a step: (sum + first) * key^n + second * key^(n-1) + ... + last * key.
[[gnu::target("pclmul,sse2")]] __m128i take_narrow(__m128i sum, const std::byte* at, std::size_t blocks,
                                                   const PolyValue* powers, std::size_t count) {
  constexpr std::size_t k_at_once = 8;
  powers += count - k_at_once;
  for (; blocks >= k_at_once; blocks -= k_at_once) {
    Product product{};
    add_product(product, _mm_xor_si128(sum, load(at)), load(powers));
#pragma GCC unroll 8
    for (std::size_t i = 1; i < k_at_once; ++i) add_product(product, load(at + i * k_element), load(powers + i));
    sum = reduce(product);
    at += k_at_once * k_element;
  }
  const __m128i key = load(powers + k_at_once - 1);
  for (; blocks > 0; --blocks, at += k_element) sum = times(_mm_xor_si128(sum, load(at)), key);
  return sum;
}

#define GRIDCTL_WIDE gnu::target("avx512f,avx512bw,vpclmulqdq,pclmul")

[[GRIDCTL_WIDE]] inline __m128i fold(__m512i lanes) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// Takes sixteen blocks a step. Returns the number of blocks taken; the rest is for take_narrow().
[[GRIDCTL_WIDE]] std::size_t take_wide(__m128i& sum, const std::byte* at, std::size_t blocks, const PolyValue* powers) {
  constexpr std::size_t k_lanes = 4, k_at_once = 16;
  __m512i factors[k_lanes];
  for (std::size_t i = 0; i < k_lanes; ++i) factors[i] = _mm512_loadu_si512(powers + k_lanes * i);
  std::size_t taken = 0;
  for (; blocks - taken >= k_at_once; taken += k_at_once, at += k_at_once * k_element) {
    __m512i low = _mm512_setzero_si512(), middle = low, high = low;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < k_lanes; ++i) {
      __m512i content = _mm512_loadu_si512(at + 64 * i);
      if (i == 0) content = _mm512_xor_si512(content, _mm512_zextsi128_si512(sum));
      low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(content, factors[i], 0x00));
      middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128(content, factors[i], 0x01));
      middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128(content, factors[i], 0x10));
      high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(content, factors[i], 0x11));
    }
    sum = reduce({fold(low), fold(middle), fold(high)});
  }
  return taken;
}

bool is_wide() {
  static const bool wide = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                           __builtin_cpu_supports("vpclmulqdq") != 0;
  return wide;
}

PolyValue value_of(__m128i from) {
  PolyValue value;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(value.data()), from);
  return value;
}

}  // namespace

bool PolyHash::is_supported() {
  static const bool supported = __builtin_cpu_supports("pclmul") != 0;
  return supported;
}

PolyHash::PolyHash(const PolyValue& key) {
  __m128i power = load(&key);
  for (std::size_t i = k_powers; i-- > 0; power = times(power, load(&key))) powers_[i] = value_of(power);
}

PolyValue PolyHash::of(ByteView content) const {
  __m128i sum = _mm_setzero_si128();
  std::size_t blocks = content.size() / k_element;
  const std::byte* at = content.data();
  if (is_wide()) {
    const std::size_t taken = take_wide(sum, at, blocks, powers_.data());
    at += taken * k_element;
    blocks -= taken;
  }
  sum = take_narrow(sum, at, blocks, powers_.data(), k_powers);
  // Holds the rest, filled up with zeros, and the length, so that no content equals another one with zeros behind it.
  std::array<std::byte, 2 * k_element> end{};
  const std::size_t left = content.size() % k_element, filled = left > 0 ? k_element : 0;
  if (left > 0) std::memcpy(end.data(), content.data() + content.size() - left, left);
  const std::uint64_t size = content.size();
  std::memcpy(end.data() + filled, &size, sizeof size);
  return value_of(take_narrow(sum, end.data(), filled / k_element + 1, powers_.data(), k_powers));
}

}  // namespace gridctl::crypto

#else

namespace gridctl::crypto {

bool PolyHash::is_supported() { return false; }
PolyHash::PolyHash(const PolyValue&) : powers_{} {}
PolyValue PolyHash::of(ByteView) const { return {}; }

}  // namespace gridctl::crypto

#endif
