// SPDX-License-Identifier: Apache-2.0
#include "gpubench/gemm.hpp"

#include <algorithm>

#include "gpubench/stopwatch.hpp"
#include "gpubench/work.hpp"

namespace gridctl::gpubench {
namespace {

constexpr std::uint64_t k_b_seed = 0x7f4a7c15f39cc060u;  // as in the checker
constexpr std::uint32_t k_make_groups = 2048;

std::string precision_for(const DeviceFacts& facts, std::uint64_t wanted) {
  if (wanted == 1 || !facts.tensor) return "f32";
  if (wanted == 2 || !facts.bf16) return "f16";
  return "bf16";
}

// Inner dimension and columns are small enough to be checked, and large enough to keep every unit of a fast device
// busy. Longer rows leave less of the time for the work that is done once for each: making A, hashing C. A group takes
// 128 x 256.
constexpr std::uint32_t k_wide_columns = 4096, k_wide_inner = probe::k_bench_inner_max, k_wide_tile_columns = 256;
constexpr std::uint32_t k_wide_waves = 8;  // groups of a batch that each unit takes, one after the other
constexpr std::uint32_t k_size_small = 256, k_size_plain = 2048, k_size_tensor = 4096;
constexpr double k_fast_flops = 2e11;  // slower devices are processors, or are sold as what they are not

}  // namespace

Result<Gemm> Gemm::make(Device& device, const Parameters& parameters) {
  Gemm gemm(device);
  gemm.precision_ = precision_for(device.facts(), parameters.number("numbers", 0));
  const std::uint64_t width = gemm.precision_ == "f32" ? 4 : 2;
  gemm.tile_ = gemm.tile_columns_ = gemm.precision_ == "f32" ? 64 : 128;
  TRY_ASSIGN(gemm.answer_, device.allocate(probe::k_bench_answer_groups_max * 8ull));
  const auto way = static_cast<GemmWay>(std::min<std::uint64_t>(parameters.number("way", 0), 2));
  if (gemm.precision_ == "bf16" && (way == GemmWay::library || (way == GemmWay::wide && device.facts().wide))) {
    gemm.way_ = way;
    gemm.tile_columns_ = k_wide_tile_columns;
    // Two groups fetch for each other, so that tiles come in pairs.
    const std::uint32_t rows = device.facts().units * k_wide_waves * 128 / (k_wide_columns / k_wide_tile_columns);
    TRY(gemm.take(k_wide_columns, k_wide_inner, std::max(256u, rows / 256 * 256), width));
    if (way == GemmWay::library) {
      TRY_ASSIGN(gemm.c_, device.allocate(std::uint64_t{gemm.batch_rows_} * k_wide_columns * sizeof(float)));
    }
    return gemm;
  }
  const auto square = [&](std::uint32_t size) { return gemm.take(size, size, 2 * size, width); };
  if (gemm.precision_ != "f32") {
    TRY(square(k_size_tensor));
    return gemm;
  }
  TRY(square(k_size_small));
  const Work batch = [&]() -> Result<void> {
    TRY(gemm.begin(1));
    return gemm.run_batch();
  };
  TRY(time_of(device, batch));
  TRY_ASSIGN(const double seconds, time_of(device, batch));
  if (gemm.batch_flops() / seconds > k_fast_flops) TRY(square(k_size_plain));
  return gemm;
}

Result<void> Gemm::take(std::uint32_t columns, std::uint32_t inner, std::uint32_t rows, std::uint64_t width) {
  challenge_.columns = columns;
  challenge_.inner = inner;
  batch_rows_ = rows;
  challenge_.rows_per_group = probe::k_bench_tile;
  challenge_.groups = batch_rows_ / probe::k_bench_tile;
  TRY_ASSIGN(a_, device_->allocate(std::uint64_t{rows} * inner * width));
  TRY_ASSIGN(b_, device_->allocate(std::uint64_t{columns} * inner * width));
  return {};
}

Result<void> Gemm::resize(double batches) {
  const std::uint32_t per_batch = batch_rows_ / probe::k_bench_tile;
  // Uses complete batches and parts, and no more rows than a word can count.
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
  return device_->launch("make_" + variant() + precision_, std::min(count, k_make_groups), 1,
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
  if (way_ == GemmWay::library) {
    TRY(device_->multiply(*a_, *b_, *c_, count, challenge_.columns, challenge_.inner));
    TRY(device_->launch("hash_product", count, 1,
                        {c_.get(), answer_.get(), low_half(challenge_.seed), high_half(challenge_.seed), next_row_,
                         challenge_.rows_per_group, challenge_.columns}));
    next_row_ += count;
    return {};
  }
  TRY(device_->launch(kernel(), challenge_.columns / tile_columns_, count / tile_,
                      {a_.get(), b_.get(), answer_.get(), low_half(challenge_.seed), high_half(challenge_.seed),
                       next_row_, challenge_.rows_per_group, challenge_.inner}));
  next_row_ += count;
  return {};
}

Result<probe::Words> Gemm::answer() {
  probe::Words words(challenge_.groups * std::size_t{2});
  TRY(read(*device_, *answer_, words.data(), words.size() * sizeof words[0]));
  return words;
}

Result<void> test_way(Device& device, const Parameters& parameters) {
  TRY_ASSIGN(Gemm other, Gemm::make(device, parameters));
  if (other.way_ == GemmWay::portable)
    return make_error(Code::unsupported, "the driver has no such kernel for this device");
  TRY_ASSIGN(Gemm plain, Gemm::make(device, Parameters{}));
  TRY(plain.take(other.challenge_.columns, other.challenge_.inner, other.batch_rows_, sizeof(std::uint16_t)));
  std::vector<probe::Words> answers;
  std::vector<double> times;
  for (Gemm* gemm : {&plain, &other}) {
    // The first batch pays for loading.
    for (int turn = 0; turn < 2; ++turn) {
      TRY(gemm->begin(0x6a09e667f3bcc908u));
      TRY(device.finish());
      TRY_ASSIGN(const double time, time_of(device, [&] { return gemm->run_batch(); }));
      if (turn == 1) times.push_back(time);
    }
    TRY_ASSIGN(probe::Words words, gemm->answer());
    answers.push_back(std::move(words));
  }
  if (answers[0] != answers[1]) return make_error(Code::io, "its answers differ from those of the portable kernel");
  say_number("gflops", other.batch_flops() / times[1] * 1e-9);
  return times[1] < times[0] ? Result<void>{} : make_error(Code::io, "it is not faster than the portable kernel");
}

}  // namespace gridctl::gpubench
