// SPDX-License-Identifier: Apache-2.0
#include "crypto/sha256_two.hpp"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

namespace gridctl::crypto {
namespace {

constexpr std::size_t k_lanes = 2, k_block = 64;  // messages; bytes

// See FIPS 180-4, section 4.2.2.
alignas(16) constexpr std::uint32_t k_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Holds the eight words a..h in the order of the SHA instructions.
struct State {
  __m128i abef, cdgh;
};

[[gnu::target("sha,sse4.1")]] State load(const std::uint32_t* words) {
  const __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  const __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words + 4));
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1), efgh = _mm_shuffle_epi32(hgfe, 0x1B);
  return {_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xF0)};
}

[[gnu::target("sha,sse4.1")]] void store(const State& state, std::uint32_t* words) {
  const __m128i feba = _mm_shuffle_epi32(state.abef, 0x1B), dchg = _mm_shuffle_epi32(state.cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words + 4), _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace

bool can_compress_two() {
  static const bool can = [] {
    constexpr unsigned k_features = 7, k_sha = 1u << 29;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(k_features, 0, &a, &b, &c, &d) != 0 && (b & k_sha) != 0 &&
           __builtin_cpu_supports("sse4.1") != 0;
  }();
  return can;
}

[[gnu::target("sha,sse4.1")]] void compress_two(std::uint32_t* state, const std::byte* message,
                                                std::uint32_t* other_state, const std::byte* other_message,
                                                std::size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);  // words are big-endian
  const std::byte* at[k_lanes] = {message, other_message};
  State now[k_lanes] = {load(state), load(other_state)};
  for (; blocks != 0; --blocks) {
    const State before[k_lanes] = {now[0], now[1]};
    __m128i schedule[k_lanes][4];  // the last sixteen words
#pragma GCC unroll 16
    for (std::size_t step = 0; step < 16; ++step) {  // of four rounds
      const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(k_constants + 4 * step));
#pragma GCC unroll 2
      for (std::size_t lane = 0; lane < k_lanes; ++lane) {
        __m128i* const words = schedule[lane];
        __m128i& next = words[step % 4];
        const __m128i &last = words[(step + 3) % 4], &last_but_one = words[(step + 2) % 4];
        if (step < 4) {
          next = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at[lane] + 16 * step)), swap);
        } else {
          next =
              _mm_add_epi32(_mm_sha256msg1_epu32(next, words[(step + 1) % 4]), _mm_alignr_epi8(last, last_but_one, 4));
          next = _mm_sha256msg2_epu32(next, last);
        }
        const __m128i sum = _mm_add_epi32(next, constants);
        now[lane].cdgh = _mm_sha256rnds2_epu32(now[lane].cdgh, now[lane].abef, sum);
        now[lane].abef = _mm_sha256rnds2_epu32(now[lane].abef, now[lane].cdgh, _mm_shuffle_epi32(sum, 0x0E));
      }
    }
    for (std::size_t lane = 0; lane < k_lanes; ++lane) {
      now[lane].abef = _mm_add_epi32(now[lane].abef, before[lane].abef);
      now[lane].cdgh = _mm_add_epi32(now[lane].cdgh, before[lane].cdgh);
      at[lane] += k_block;
    }
  }
  store(now[0], state);
  store(now[1], other_state);
}

}  // namespace gridctl::crypto

#else

namespace gridctl::crypto {

bool can_compress_two() { return false; }
void compress_two(std::uint32_t*, const std::byte*, std::uint32_t*, const std::byte*, std::size_t) {}

}  // namespace gridctl::crypto

#endif
