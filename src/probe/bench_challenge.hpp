// SPDX-License-Identifier: Apache-2.0
// Poses seeded challenges to a GPU and checks their answers. Pure. The same arithmetic runs on the device in
// src/gpubench/kernels.cl: integers below 2^24 in every partial sum, fused multiply-adds and 32-bit words, so that an
// honest answer is exact in any order of addition on a device.
//
// An answer proves that a device, or something at least as fast, has done the work since the seed was sent, because the
// checker picks the parts that it recomputes after the answer has come. A device that skips a share s of the parts
// passes a check of p parts with probability (1 - s)^p. The caller measures the time, by its own clock.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::probe {

using Words = std::vector<std::uint32_t>;
using Draw = std::function<std::uint64_t()>;  // 64 random bits that nobody can foresee

// Mixes bits for all generators (the finaliser of MurmurHash3).
[[nodiscard]] constexpr std::uint32_t bench_mix(std::uint32_t h) {
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16);
}

inline constexpr std::uint32_t k_bench_lanes = 256;                // work-items of a group, on every device
inline constexpr std::uint32_t k_bench_groups_max = 65536;         // parts of one answer: half a frame as hex digits
inline constexpr std::uint32_t k_bench_answer_groups_max = 16384;  // of computing challenges: two words each
inline constexpr std::uint32_t k_bench_tile = 128;                 // matrix sizes are multiples of it
inline constexpr std::uint32_t k_bench_inner_max = 8192;           // partial sums of longer rows could pass 2^24
inline constexpr std::uint32_t k_bench_chains = 8;                 // independent FMA chains of a work-item

// Describes C = A B: A has groups * rows_per_group rows, B is inner x columns, entries are whole numbers in -127..127.
struct GemmChallenge {
  std::uint64_t seed = 0;
  std::uint32_t groups = 0, rows_per_group = 0;  // rows_per_group: a multiple of k_bench_tile
  std::uint32_t columns = 0, inner = 0;          // multiples of k_bench_tile
  [[nodiscard]] double flops() const { return 2.0 * groups * rows_per_group * columns * inner; }
};
// Describes the work in which every work-item iterates x <- x*x + c on eight chains; one hash for a group of
// k_bench_lanes items.
struct FmaChallenge {
  std::uint64_t seed = 0;
  std::uint32_t groups = 0, steps = 0;
  [[nodiscard]] double flops() const { return 2.0 * groups * k_bench_lanes * k_bench_chains * steps; }
};
// Describes the work in which the memory is filled with blocks of words that follow from `seed`; only then is `after`
// sent, and every block hashed from that value.
struct FillChallenge {
  std::uint64_t seed = 0, after = 0;
  std::uint32_t blocks = 0;
  std::uint32_t block_words = 0;  // a multiple of 4 * k_bench_lanes
  [[nodiscard]] double bytes() const { return 4.0 * blocks * block_words; }
};

// Computes the answer of an honest device for one part.
struct GemmPart {
  std::uint32_t hash = 0;        // of every element, in no linear way: who has not computed it cannot know it
  std::uint32_t projection = 0;  // weights * (C r) modulo 2^32, Freivalds' test
};
[[nodiscard]] GemmPart gemm_part(const GemmChallenge& challenge, std::uint32_t group);
[[nodiscard]] std::uint32_t fma_part(const FmaChallenge& challenge, std::uint32_t group);
[[nodiscard]] std::uint32_t fill_part(const FillChallenge& challenge, std::uint32_t block);

// Check answers: the words of all parts in order; for a GEMM, hash and projection in turn. refused if one is wrong,
// with the first wrong part; protocol_violation if the answer has another size, or we never pose such a challenge.
//
// A GEMM costs the checker `parts` * rows_per_group * columns * inner multiplications, and inner * columns words of
// memory; projections of up to 256 groups are checked besides, which is cheap.
[[nodiscard]] Result<void> check_gemm(const GemmChallenge& challenge, const Words& answer, std::uint32_t parts,
                                      const Draw& draw);
[[nodiscard]] Result<void> check_fma(const FmaChallenge& challenge, const Words& answer, std::uint32_t parts,
                                     const Draw& draw);
[[nodiscard]] Result<void> check_fill(const FillChallenge& challenge, const Words& answer, std::uint32_t parts,
                                      const Draw& draw);

// Returns two words that stand for an answer until it comes.
[[nodiscard]] Words bench_commitment(const Words& answer);

// Converts words to hexadecimal digits, eight each; parse refuses anything else and more than `words_max`.
[[nodiscard]] std::string words_to_hex(std::span<const std::uint32_t> words);
[[nodiscard]] Result<Words> words_from_hex(std::string_view hex, std::size_t words_max = k_bench_groups_max);

}  // namespace gridctl::probe
