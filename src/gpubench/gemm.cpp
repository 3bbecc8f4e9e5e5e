// SPDX-License-Identifier: Apache-2.0
#include "gpubench/gemm.hpp"

#include <algorithm>

#include "gpubench/stopwatch.hpp"

namespace gridctl::gpubench {
namespace {

constexpr std::uint64_t k_b_seed = 0x7f4a7c15f39cc060u;  // as in the checker
constexpr std::uint32_t k_make_groups = 2048;

std::string precision_for(const DeviceFacts& facts, std::uint64_t wanted) {
  if (wanted == 1 || !facts.tensor) return "f32";
  if (wanted == 2 || !facts.bf16) return "f16";
  return "bf16";
}

// Inner dimension and columns: small enough to be checked, large enough to keep every unit of a fast device busy.
constexpr std::uint32_t k_size_small = 256, k_size_plain = 2048, k_size_tensor = 4096;
constexpr double k_fast_flops = 2e11;  // slower devices are processors, or are sold as what they are not

}  // namespace

Result<Gemm> Gemm::make(Device& device, const Parameters& parameters) {
  Gemm gemm(device);
  gemm.precision_ = precision_for(device.facts(), parameters.number("numbers", 0));
  const std::uint64_t width = gemm.precision_ == "f32" ? 4 : 2;
  gemm.tile_ = gemm.precision_ == "f32" ? 64 : 128;
  TRY_ASSIGN(gemm.answer_, device.allocate(probe::k_bench_answer_groups_max * 8ull));
  if (gemm.precision_ != "f32") {
    TRY(gemm.take(k_size_tensor, width));
    return gemm;
  }
  TRY(gemm.take(k_size_small, width));
  const Work batch = [&]() -> Result<void> {
    TRY(gemm.begin(1));
    return gemm.run_batch();
  };
  TRY(time_of(device, batch));
  TRY_ASSIGN(const double seconds, time_of(device, batch));
  if (gemm.batch_flops() / seconds > k_fast_flops) TRY(gemm.take(k_size_plain, width));
  return gemm;
}

Result<void> Gemm::take(std::uint32_t size, std::uint64_t width) {
  challenge_.columns = challenge_.inner = size;
  batch_rows_ = 2 * size;
  challenge_.rows_per_group = probe::k_bench_tile;
  challenge_.groups = batch_rows_ / probe::k_bench_tile;
  TRY_ASSIGN(a_, device_->allocate(std::uint64_t{batch_rows_} * size * width));
  TRY_ASSIGN(b_, device_->allocate(std::uint64_t{size} * size * width));
  return {};
}

Result<void> Gemm::resize(double batches) {
  const std::uint32_t per_batch = batch_rows_ / probe::k_bench_tile;
  // Whole batches, whole parts, and no more rows than a word counts.
  const double most = static_cast<double>(0xffffffffu / batch_rows_ - 1);
  auto count = static_cast<std::uint32_t>(std::clamp(batches, 1.0, most));
  std::uint32_t tiles_per_part = 1;
  while (std::uint64_t{count} * per_batch / tiles_per_part > probe::k_bench_answer_groups_max) tiles_per_part *= 2;
  count = (count + tiles_per_part - 1) / tiles_per_part * tiles_per_part;
  while (std::uint64_t{count} * per_batch / tiles_per_part > probe::k_bench_answer_groups_max) count -= tiles_per_part;
  challenge_.rows_per_group = tiles_per_part * probe::k_bench_tile;
  challenge_.groups = count * per_batch / tiles_per_part;
  return {};
}

Result<void> Gemm::fill(Buffer& buffer, std::uint64_t seed, std::uint32_t row0, std::uint32_t count) {
  return device_->launch("make_" + precision_, std::min(count, k_make_groups), 1,
                         {&buffer, low_half(seed), high_half(seed), row0, count, challenge_.inner / 4});
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
                      {a_.get(), b_.get(), answer_.get(), low_half(challenge_.seed), high_half(challenge_.seed), next_row_,
                       challenge_.rows_per_group, challenge_.inner}));
  next_row_ += count;
  return {};
}

Result<probe::Words> Gemm::answer() {
  probe::Words words(challenge_.groups * std::size_t{2});
  TRY(read(*device_, *answer_, words.data(), words.size() * sizeof words[0]));
  return words;
}

}  // namespace gridctl::gpubench
