// SPDX-License-Identifier: Apache-2.0
// Computes the matrix product of the challenge, on the device's matrix units if it has any.
#pragma once

#include "gpubench/device.hpp"
#include "gpubench/talk.hpp"
#include "probe/bench_challenge.hpp"

namespace gridctl::gpubench {

// Returns half of the seed, because kernels take a seed as two words.
[[nodiscard]] inline std::uint32_t low_half(std::uint64_t seed) { return static_cast<std::uint32_t>(seed); }
[[nodiscard]] inline std::uint32_t high_half(std::uint64_t seed) { return static_cast<std::uint32_t>(seed >> 32); }

// Names the way: kernels for every generation, the kernel for the device's own generation, or the maker's library.
enum class GemmWay : std::uint8_t { portable, wide, library };

class Gemm {
 public:
  // Chooses sizes that suit the device. The parameter `numbers`: 0 = bf16, fp16 or fp32, the first for which it has
  // matrix units, 1 = fp32, 2 = fp16, 3 = bf16. The parameter `way` is a GemmWay that test_way has tried.
  [[nodiscard]] static Result<Gemm> make(Device& device, const Parameters& parameters);

  // Sets the number of batches, as parts of one answer.
  [[nodiscard]] Result<void> resize(double batches);
  [[nodiscard]] const probe::GemmChallenge& challenge() const { return challenge_; }
  [[nodiscard]] Result<void> begin(std::uint64_t seed);  // queues B, and clears the answer
  [[nodiscard]] Result<void> run_batch();                // queues the next rows
  [[nodiscard]] bool done() const { return next_row_ >= rows(); }
  [[nodiscard]] double batch_flops() const { return 2.0 * batch_rows_ * challenge_.columns * challenge_.inner; }
  // Computes the hash and projection of every part, in turn; waits.
  [[nodiscard]] Result<probe::Words> answer();
  [[nodiscard]] std::string_view precision() const { return precision_; }
  // Returns "gemm_bf16", "gemm_wide_bf16" or "cublas".
  [[nodiscard]] std::string kernel() const {
    return way_ == GemmWay::library ? "cublas" : "gemm_" + variant() + precision_;
  }

 private:
  friend Result<void> test_way(Device& device, const Parameters& parameters);
  [[nodiscard]] std::string variant() const { return way_ == GemmWay::wide ? "wide_" : ""; }
  explicit Gemm(Device& device) : device_(&device) {}
  [[nodiscard]] std::uint32_t rows() const { return challenge_.groups * challenge_.rows_per_group; }
  // Allocates memory for matrices of that size.
  [[nodiscard]] Result<void> take(std::uint32_t columns, std::uint32_t inner, std::uint32_t rows, std::uint64_t width);
  [[nodiscard]] Result<void> fill(Buffer& buffer, std::uint64_t seed, std::uint32_t row0, std::uint32_t count);

  Device* device_;
  probe::GemmChallenge challenge_;
  std::string precision_;    // "f32", "f16", "bf16"
  GemmWay way_ = GemmWay::portable;
  std::uint32_t tile_ = 64;  // rows of a group of the kernel,
  std::uint32_t tile_columns_ = 64;
  std::uint32_t batch_rows_ = 0;
  std::uint32_t next_row_ = 0;
  BufferPtr a_, b_, c_, answer_;  // c_: of the library
};

}  // namespace gridctl::gpubench
