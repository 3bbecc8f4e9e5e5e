// SPDX-License-Identifier: Apache-2.0
#include "probe/bench_challenge.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

// The checker must not need a GPU's time: its two inner loops use all features of the processor.
#if defined(__x86_64__)
#define GRIDCTL_FAST __attribute__((optimize("O3"), target("avx2,fma")))
#define GRIDCTL_HAS_FAST (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#endif

namespace gridctl::probe {
namespace {

constexpr std::uint32_t k_projected_parts = 256;  // at most so many groups pass Freivalds' test: it costs little
constexpr std::uint32_t k_golden = 0x9e3779b1u;
constexpr std::uint32_t k_hash_rows = 0x68bc21ebu;  // tells the keys of C's rows from those of A's
constexpr std::uint64_t k_b_seed = 0x7f4a7c15f39cc060u;
constexpr std::uint32_t k_columns_max = 65536;

struct Seed {
  std::uint32_t low, high;
  explicit Seed(std::uint64_t seed)
      : low(static_cast<std::uint32_t>(seed)), high(static_cast<std::uint32_t>(seed >> 32)) {}
};

std::uint32_t row_key(Seed seed, std::uint32_t row) {
  return bench_mix(bench_mix((row * k_golden) ^ seed.low) + seed.high);
}
std::uint32_t word_of(std::uint32_t key, std::uint32_t at) { return bench_mix(key ^ (at * k_golden)); }
std::int16_t entry_of(std::uint32_t word, std::uint32_t at) {
  const int value = static_cast<int>((word >> (8 * at)) & 255u) - 128;
  return static_cast<std::int16_t>(value == -128 ? 0 : value);
}
std::uint32_t projection_weight(Seed seed, std::uint32_t column) {
  return bench_mix(bench_mix(column + seed.high) ^ seed.low) | 1u;
}

using Row = std::vector<std::int16_t>;
void make_row(Row& row, Seed seed, std::uint32_t number) {
  const std::uint32_t key = row_key(seed, number);
  for (std::uint32_t at = 0; at < row.size() / 4; ++at) {
    const std::uint32_t word = word_of(key, at);
    for (std::uint32_t i = 0; i < 4; ++i) row[at * 4 + i] = entry_of(word, i);
  }
}

std::int32_t dot_plain(const std::int16_t* a, const std::int16_t* b, std::size_t count) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
// Computes the chains of four lanes at once.
constexpr std::size_t k_together = 4 * k_bench_chains;
void iterate_plain(float* x, const float* c, std::uint32_t steps) {
  for (std::uint32_t step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < k_together; ++i) x[i] = std::fma(x[i], x[i], c[i]);
}
#ifdef GRIDCTL_FAST
GRIDCTL_FAST std::int32_t dot_fast(const std::int16_t* a, const std::int16_t* b, std::size_t count) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
GRIDCTL_FAST void iterate_fast(float* x, const float* c, std::uint32_t steps) {
  float values[k_together], offsets[k_together];  // in registers
  for (std::size_t i = 0; i < k_together; ++i) values[i] = x[i], offsets[i] = c[i];
  for (std::uint32_t step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < k_together; ++i) values[i] = __builtin_fmaf(values[i], values[i], offsets[i]);
  for (std::size_t i = 0; i < k_together; ++i) x[i] = values[i];
}
const auto dot_product = GRIDCTL_HAS_FAST ? &dot_fast : &dot_plain;
const auto iterate = GRIDCTL_HAS_FAST ? &iterate_fast : &iterate_plain;
#else
const auto dot_product = &dot_plain;
const auto iterate = &iterate_plain;
#endif

// Computes all of B^T, because each checked row of C needs all of it.
std::vector<Row> columns_of_b(const GemmChallenge& challenge) {
  std::vector<Row> columns(challenge.columns, Row(challenge.inner));
  for (std::uint32_t j = 0; j < challenge.columns; ++j) make_row(columns[j], Seed{challenge.seed ^ k_b_seed}, j);
  return columns;
}

GemmPart compute_gemm_part(const GemmChallenge& challenge, const std::vector<Row>& b, std::uint32_t group) {
  GemmPart part;
  const Seed seed{challenge.seed};
  Row a(challenge.inner);
  for (std::uint32_t i = 0; i < challenge.rows_per_group; ++i) {
    const std::uint32_t row = group * challenge.rows_per_group + i;
    make_row(a, seed, row);
    const std::uint32_t key = row_key(Seed{challenge.seed ^ k_hash_rows}, row);
    std::uint32_t projection = 0;
    for (std::uint32_t j = 0; j < challenge.columns; ++j) {
      const auto value = static_cast<std::uint32_t>(dot_product(a.data(), b[j].data(), a.size()));
      part.hash += bench_mix(value * k_golden + ((j * 0x85ebca77u) ^ key));
      projection += value * projection_weight(seed, j);
    }
    part.projection += projection * (key | 1u);
  }
  return part;
}

// Computes B r modulo 2^32.
Words projected_b(const GemmChallenge& challenge, const std::vector<Row>& b) {
  Words projected(challenge.inner, 0);
  for (std::uint32_t j = 0; j < challenge.columns; ++j) {
    const std::uint32_t weight = projection_weight(Seed{challenge.seed}, j);
    for (std::uint32_t k = 0; k < challenge.inner; ++k)
      projected[k] += weight * static_cast<std::uint32_t>(static_cast<std::int32_t>(b[j][k]));
  }
  return projected;
}

std::uint32_t projection_of(const GemmChallenge& challenge, const Words& projected, std::uint32_t group) {
  std::uint32_t total = 0;
  Row a(challenge.inner);
  for (std::uint32_t i = 0; i < challenge.rows_per_group; ++i) {
    const std::uint32_t row = group * challenge.rows_per_group + i;
    make_row(a, Seed{challenge.seed}, row);
    std::uint32_t sum = 0;
    for (std::uint32_t k = 0; k < challenge.inner; ++k)
      sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(a[k])) * projected[k];
    total += sum * (row_key(Seed{challenge.seed ^ k_hash_rows}, row) | 1u);
  }
  return total;
}

Error wrong(const char* what, std::uint32_t part, std::uint32_t parts) {
  return make_error(Code::refused, std::string("the answer to the ") + what + " challenge is wrong in part " +
                                       std::to_string(part) + " of " + std::to_string(parts));
}
Result<void> expect_size(const char* what, const Words& words, std::uint32_t groups) {
  if (words.size() == groups) return {};
  return make_error(Code::protocol_violation, std::string("the answer to the ") + what + " challenge has " +
                                                  std::to_string(words.size()) + " words instead of " +
                                                  std::to_string(groups));
}
Result<void> sensible(bool good, const char* what) {
  if (good) return {};
  return make_error(Code::protocol_violation, std::string("this is not a ") + what + " challenge of ours");
}
std::uint32_t pick(const Draw& draw, std::uint32_t groups) { return static_cast<std::uint32_t>(draw() % groups); }

}  // namespace

GemmPart gemm_part(const GemmChallenge& challenge, std::uint32_t group) {
  return compute_gemm_part(challenge, columns_of_b(challenge), group);
}

std::uint32_t fma_part(const FmaChallenge& challenge, std::uint32_t group) {
  std::uint32_t sum = 0;
  for (std::uint32_t lane = 0; lane < k_bench_lanes; lane += 4) {
    std::array<float, k_together> x{}, c{};
    std::array<std::uint32_t, 4> hashes{};
    for (std::uint32_t one = 0; one < 4; ++one) {
      const std::uint32_t key = row_key(Seed{challenge.seed}, group * k_bench_lanes + lane + one);
      const auto unit = [&](std::uint32_t at, std::uint32_t exponent) {
        return std::bit_cast<float>(exponent | (word_of(key, at) >> 9));
      };
      hashes[one] = key;
      for (std::uint32_t chain = 0; chain < k_bench_chains; ++chain) {
        x[one * k_bench_chains + chain] = unit(chain, 0x3f000000u);
        c[one * k_bench_chains + chain] = -(1.875f + unit(8, 0x3f800000u) * 0.0625f - 0.0625f);
      }
    }
    iterate(x.data(), c.data(), challenge.steps);
    for (std::uint32_t i = 0; i < k_together; ++i) {
      std::uint32_t& hash = hashes[i / k_bench_chains];
      hash = bench_mix(std::bit_cast<std::uint32_t>(x[i]) + hash);
    }
    for (const std::uint32_t hash : hashes) sum += hash;
  }
  return sum;
}

std::uint32_t fill_part(const FillChallenge& challenge, std::uint32_t block) {
  static constexpr std::array<std::uint32_t, 4> k_weights{1, 3, 5, 7};
  const std::uint32_t key = row_key(Seed{challenge.seed}, block);
  const std::uint32_t after = row_key(Seed{challenge.after}, block);
  std::uint32_t sum = 0;
  for (std::uint32_t lane = 0; lane < k_bench_lanes; ++lane)
    for (std::uint32_t chain = 0; chain < 4; ++chain) {
      std::uint32_t state = word_of(key, lane * 4 + chain), hash = word_of(after, lane);
      for (std::uint32_t i = 0; i < challenge.block_words / (4 * k_bench_lanes); ++i) {
        state = (state ^ (state >> 15)) * 0x2c1b3c6du + 0x297a2d39u;
        hash = (hash ^ state) * k_golden;
      }
      sum += k_weights[chain] * bench_mix(hash);
    }
  return sum;
}

Result<void> check_gemm(const GemmChallenge& challenge, const Words& answer, std::uint32_t parts, const Draw& draw) {
  TRY(sensible(challenge.groups > 0 && challenge.groups <= k_bench_answer_groups_max && challenge.columns > 0 &&
                   challenge.columns <= k_columns_max && challenge.inner > 0 && challenge.inner <= k_bench_inner_max &&
                   challenge.inner % k_bench_tile == 0,
               "matrix"));
  TRY(expect_size("matrix", answer, 2 * challenge.groups));
  const std::vector<Row> b = columns_of_b(challenge);
  const Words projected = projected_b(challenge, b);
  const bool all = challenge.groups <= k_projected_parts;
  for (std::uint32_t i = 0; i < std::min(challenge.groups, k_projected_parts); ++i) {
    const std::uint32_t group = all ? i : pick(draw, challenge.groups);
    if (projection_of(challenge, projected, group) != answer[2 * group + 1])
      return wrong("matrix", group, challenge.groups);
  }
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t group = pick(draw, challenge.groups);
    const GemmPart part = compute_gemm_part(challenge, b, group);
    if (part.hash != answer[2 * group] || part.projection != answer[2 * group + 1])
      return wrong("matrix", group, challenge.groups);
  }
  return {};
}

Result<void> check_fma(const FmaChallenge& challenge, const Words& answer, std::uint32_t parts, const Draw& draw) {
  TRY(sensible(challenge.groups > 0 && challenge.groups <= k_bench_answer_groups_max, "fp32"));
  TRY(expect_size("fp32", answer, challenge.groups));
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t group = pick(draw, challenge.groups);
    if (fma_part(challenge, group) != answer[group]) return wrong("fp32", group, challenge.groups);
  }
  return {};
}

Result<void> check_fill(const FillChallenge& challenge, const Words& answer, std::uint32_t parts, const Draw& draw) {
  TRY(sensible(challenge.blocks > 0 && challenge.blocks <= k_bench_groups_max &&
                   challenge.block_words % (4 * k_bench_lanes) == 0,
               "memory"));
  TRY(expect_size("memory", answer, challenge.blocks));
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t block = pick(draw, challenge.blocks);
    if (fill_part(challenge, block) != answer[block]) return wrong("memory", block, challenge.blocks);
  }
  return {};
}

Words bench_commitment(const Words& answer) {
  Words two{0x243f6a88u, 0x85a308d3u};
  for (const std::uint32_t word : answer) {
    two[0] = bench_mix(two[0] ^ word);
    two[1] = bench_mix(two[1] + word * k_golden);
  }
  return two;
}

std::string words_to_hex(std::span<const std::uint32_t> words) {
  static constexpr std::string_view k_digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(words.size() * 8);
  for (const std::uint32_t word : words)
    for (int shift = 28; shift >= 0; shift -= 4) hex += k_digits[(word >> shift) & 15u];
  return hex;
}

Result<Words> words_from_hex(std::string_view hex, std::size_t words_max) {
  const auto bad = [](const char* why) {
    return make_error(Code::protocol_violation, std::string("the answer's digits cannot be read: ") + why);
  };
  if (hex.size() % 8 != 0) return bad("not a whole number of words");
  if (hex.size() / 8 > words_max) return bad("too many words");
  Words words(hex.size() / 8, 0);
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const char digit = hex[i];
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'a' || digit > 'f')) return bad("a digit is not valid");
    words[i / 8] = words[i / 8] << 4 | static_cast<std::uint32_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return words;
}

}  // namespace gridctl::probe
