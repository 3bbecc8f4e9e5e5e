// SPDX-License-Identifier: Apache-2.0
// Implements the tests whose answers the controller checks.
#include <algorithm>

#include "gpubench/gemm.hpp"
#include "gpubench/stopwatch.hpp"
#include "gpubench/work.hpp"
#include "os/random.hpp"

namespace gridctl::gpubench {
namespace {

constexpr double k_warm_up = 3.0;                    // seconds at most until clocks have settled
constexpr std::uint64_t k_piece_max = 1ull << 30;    // bytes of one buffer of the fill
constexpr std::uint64_t k_cpu_fill = 64ull << 20;    // a CPU's memory is the host's: programs live there
constexpr std::uint64_t k_kept_free = 256ull << 20;  // for the driver itself, besides a fiftieth
constexpr std::uint32_t k_fma_groups_first = 16;
constexpr std::uint32_t k_fma_groups_per_unit = 64;  // parts of the answer: many, for each is checked whole
constexpr std::uint32_t k_fma_steps_min = 1024, k_fma_steps_max = 1u << 22;
constexpr std::uint32_t k_block_words_min = 1u << 18;  // 1 MiB

double warm_up_limit(const Parameters& parameters) {
  return static_cast<double>(parameters.number("warm_up_ms", static_cast<std::uint64_t>(k_warm_up * 1000))) / 1000;
}

// Holds the memory that the test was able to allocate, in pieces.
struct Filled {
  struct Piece {
    BufferPtr buffer;
    std::uint32_t block0 = 0, blocks = 0;
  };
  std::vector<Piece> pieces;
  std::uint32_t blocks = 0, block_words = 0;
};

Result<Filled> take_memory(Device& device, std::uint64_t bytes_max) {
  const DeviceFacts& facts = device.facts();
  const std::uint64_t free = device.free_bytes();
  std::uint64_t wanted = free - std::min(free, k_kept_free + free / 50);
  if (facts.kind == "cpu") wanted = std::min(wanted, k_cpu_fill);
  wanted = std::min(wanted, bytes_max);
  Filled filled;
  const std::uint64_t words = wanted / 4 / probe::k_bench_groups_max;
  filled.block_words =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(k_block_words_min, (words + 4095) / 4096 * 4096));
  const std::uint64_t block_bytes = filled.block_words * 4ull;
  std::uint64_t piece = std::min({k_piece_max, facts.allocation_bytes_max, wanted}) / block_bytes;
  while (piece > 0 && filled.blocks < probe::k_bench_groups_max) {
    const std::uint64_t left = (wanted - filled.blocks * block_bytes) / block_bytes;
    piece = std::min({piece, left, std::uint64_t{probe::k_bench_groups_max} - filled.blocks});
    if (piece == 0) break;
    Result<BufferPtr> buffer = device.allocate(piece * block_bytes);
    if (!buffer) {
      piece /= 2;  // what is left lies in smaller holes
      continue;
    }
    filled.pieces.push_back({std::move(*buffer), filled.blocks, static_cast<std::uint32_t>(piece)});
    filled.blocks += static_cast<std::uint32_t>(piece);
  }
  if (filled.blocks == 0) return make_error(Code::no_space, "the device has no free memory to fill");
  return filled;
}

// Names the answer before sending it: the controller's clock then counts the work and not the transfer of the words.
Result<void> give(const probe::Words& words, std::string_view name) {
  say_words(name, words);
  return {};
}
Result<void> commit(const probe::Words& words) {
  say_words("commit", probe::bench_commitment(words));
  TRY(hear_seed());
  return {};
}

std::uint64_t target_ms(const Parameters& parameters) {
  return std::clamp<std::uint64_t>(parameters.number("target_ms", 400), 1, 60'000);
}

}  // namespace

Result<void> test_gemm(Device& device, const Parameters& parameters) {
  TRY_ASSIGN(Gemm gemm, Gemm::make(device, parameters));
  TRY(gemm.begin(os::random_u64()));
  TRY(device.finish());
  const auto batch = [&]() -> Result<void> {
    if (gemm.done()) TRY(gemm.begin(os::random_u64()));
    return gemm.run_batch();
  };
  TRY_ASSIGN(const double settled, settle(device, batch, warm_up_limit(parameters)));
  TRY(gemm.resize(static_cast<double>(target_ms(parameters)) / 1000 / settled));
  say_text("precision", gemm.precision());
  say_text("kernel", gemm.kernel());
  say_number("settled_gflops", gemm.batch_flops() / settled * 1e-9);
  const probe::GemmChallenge& sizes = gemm.challenge();
  say_number("groups", sizes.groups);
  say_number("rows_per_group", sizes.rows_per_group);
  say_number("columns", sizes.columns);
  say_number("inner", sizes.inner);
  TRY_ASSIGN(const std::uint64_t seed, hear_seed());
  const double began = now_seconds();
  TRY(gemm.begin(seed));
  while (!gemm.done()) TRY(gemm.run_batch());
  TRY_ASSIGN(const probe::Words answer, gemm.answer());
  say_number("seconds", now_seconds() - began);
  TRY(commit(answer));
  return give(answer, "answer");
}

Result<void> test_fma(Device& device, const Parameters& parameters) {
  TRY_ASSIGN(const BufferPtr answer, device.allocate(probe::k_bench_answer_groups_max * 4ull));
  std::uint32_t groups = k_fma_groups_first, steps = k_fma_steps_min;
  const auto run = [&](std::uint64_t seed) {
    return device.launch("fma_f32", groups, 1, {answer.get(), low_half(seed), high_half(seed), 0u, steps});
  };
  const Work some = [&] { return run(os::random_u64()); };
  const double target = static_cast<double>(target_ms(parameters)) / 1000;
  // Uses enough parts to keep the device busy, but no more than it can do in that time.
  TRY(time_of(device, some));
  TRY_ASSIGN(const double trial, time_of(device, some));
  const double affordable = std::max(1.0, target / 4 / trial) * k_fma_groups_first;
  const std::uint32_t wanted =
      std::clamp(device.facts().units * k_fma_groups_per_unit, k_fma_groups_first, probe::k_bench_answer_groups_max);
  groups = static_cast<std::uint32_t>(std::min<double>(wanted, affordable));
  TRY_ASSIGN(double time, settle(device, some, warm_up_limit(parameters)));
  while (time < target / 2 && steps < k_fma_steps_max) {
    steps = std::min(k_fma_steps_max, steps * 2);
    TRY_ASSIGN(time, time_of(device, some));
  }
  say_number("settled_gflops", probe::FmaChallenge{0, groups, steps}.flops() / time * 1e-9);
  say_number("groups", groups);
  say_number("steps", steps);
  TRY_ASSIGN(const std::uint64_t seed, hear_seed());
  const double began = now_seconds();
  TRY(run(seed));
  probe::Words words(groups);
  TRY(read(device, *answer, words.data(), groups * 4ull));
  say_number("seconds", now_seconds() - began);
  TRY(commit(words));
  return give(words, "answer");
}

Result<void> test_fill(Device& device, const Parameters& parameters) {
  TRY_ASSIGN(const Filled filled, take_memory(device, parameters.number("bytes_max", ~std::uint64_t{0})));
  TRY_ASSIGN(const BufferPtr answer, device.allocate(filled.blocks * 4ull));
  say_number("blocks", filled.blocks);
  say_number("block_words", filled.block_words);
  say_number("free_bytes", static_cast<double>(device.free_bytes()));
  TRY_ASSIGN(const std::uint64_t seed, hear_seed());
  double began = now_seconds();
  for (const Filled::Piece& piece : filled.pieces)
    TRY(device.launch("fill_memory", piece.blocks, 1,
                      {piece.buffer.get(), low_half(seed), high_half(seed), piece.block0, filled.block_words}));
  TRY(device.finish());
  say_number("fill_seconds", now_seconds() - began);
  TRY_ASSIGN(const std::uint64_t after, hear_seed());
  began = now_seconds();
  for (const Filled::Piece& piece : filled.pieces)
    TRY(device.launch("hash_memory", piece.blocks, 1,
                      {piece.buffer.get(), answer.get(), low_half(after), high_half(after), piece.block0, filled.block_words}));
  probe::Words words(filled.blocks);
  TRY(read(device, *answer, words.data(), words.size() * 4));
  say_number("hash_seconds", now_seconds() - began);
  TRY(commit(words));
  return give(words, "answer");
}

}  // namespace gridctl::gpubench
