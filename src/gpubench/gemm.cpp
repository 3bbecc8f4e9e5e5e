// SPDX-License-Identifier: Apache-2.0
#include "gpubench/gemm.hpp"

#include <algorithm>

namespace gridctl::gpubench {
namespace {

constexpr std::uint64_t k_b_seed = 0x7f4a7c15f39cc060u;  // as in the checker
constexpr std::uint32_t k_batch_rows_max = 8192;         // 256 MiB of A in 32 bits
constexpr std::uint32_t k_make_groups = 2048;

std::uint32_t low(std::uint64_t seed) { return static_cast<std::uint32_t>(seed); }
std::uint32_t high(std::uint64_t seed) { return static_cast<std::uint32_t>(seed >> 32); }

std::string precision_for(const DeviceFacts& facts, std::uint64_t wanted) {
  if (wanted == 1 || !facts.tensor) return "f32";
  if (wanted == 2 || !facts.bf16) return "f16";
  return "bf16";
}

Result<probe::GemmChallenge> sizes(const Parameters& parameters) {
  const auto size = [&](const char* name, std::uint64_t fallback) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(parameters.number(name, fallback), 1u << 30));
  };
  probe::GemmChallenge challenge;
  challenge.groups = size("groups", 64);
  challenge.rows_per_group = size("rows_per_group", 128);
  challenge.columns = size("columns", 1024);
  challenge.inner = size("inner", 1024);
  const auto fits = [](std::uint32_t value) { return value > 0 && value % probe::k_bench_tile == 0; };
  if (!fits(challenge.rows_per_group) || !fits(challenge.columns) || !fits(challenge.inner) ||
      challenge.inner > probe::k_bench_inner_max || challenge.groups == 0 ||
      challenge.groups > probe::k_bench_groups_max ||
      static_cast<std::uint64_t>(challenge.groups) * challenge.rows_per_group > 0xffffffffu)
    return make_error(Code::usage, "matrices of this size are not multiplied");
  return challenge;
}

}  // namespace

Result<Gemm> Gemm::make(Device& device, const Parameters& parameters) {
  Gemm gemm(device);
  TRY_ASSIGN(gemm.challenge_, sizes(parameters));
  gemm.precision_ = precision_for(device.facts(), parameters.number("numbers", 0));
  const std::uint64_t width = gemm.precision_ == "f32" ? 4 : 2;
  gemm.tile_ = gemm.precision_ == "f32" ? 64 : 128;
  // Whole tiles, all of one size: the total is a multiple of the tile, so are its halves until they are small.
  gemm.batch_rows_ = gemm.rows();
  if (gemm.batch_rows_ > k_batch_rows_max) gemm.batch_rows_ = k_batch_rows_max;
  const std::uint64_t inner = gemm.challenge_.inner;
  TRY_ASSIGN(gemm.a_, device.allocate(gemm.batch_rows_ * inner * width));
  TRY_ASSIGN(gemm.b_, device.allocate(gemm.challenge_.columns * inner * width));
  TRY_ASSIGN(gemm.answer_, device.allocate(gemm.challenge_.groups * 8ull));
  return gemm;
}

Result<void> Gemm::fill(Buffer& buffer, std::uint64_t seed, std::uint32_t row0, std::uint32_t count) {
  return device_->launch("make_" + precision_, std::min(count, k_make_groups), 1,
                         {&buffer, low(seed), high(seed), row0, count, challenge_.inner / 4});
}

Result<void> Gemm::begin(std::uint64_t seed) {
  challenge_.seed = seed;
  next_row_ = 0;
  TRY(device_->clear(*answer_, challenge_.groups * 8ull));
  return fill(*b_, seed ^ k_b_seed, 0, challenge_.columns);
}

Result<void> Gemm::run_batch() {
  const std::uint32_t count = std::min(batch_rows_, rows() - next_row_);
  TRY(fill(*a_, challenge_.seed, next_row_, count));
  TRY(device_->launch("gemm_" + precision_, challenge_.columns / tile_, count / tile_,
                      {a_.get(), b_.get(), answer_.get(), low(challenge_.seed), high(challenge_.seed), next_row_,
                       challenge_.rows_per_group, challenge_.inner}));
  next_row_ += count;
  return {};
}

Result<probe::Words> Gemm::answer() {
  probe::Words words(challenge_.groups * std::size_t{2});
  TRY(device_->read(*answer_, words.data(), words.size() * sizeof words[0]));
  return words;
}

}  // namespace gridctl::gpubench
