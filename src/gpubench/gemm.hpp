// SPDX-License-Identifier: Apache-2.0
// The matrix product of the challenge, on the device's matrix units where it has such.
#pragma once

#include "gpubench/device.hpp"
#include "gpubench/talk.hpp"
#include "probe/bench_challenge.hpp"

namespace gridctl::gpubench {

class Gemm {
 public:
  // Sizes of the parameters groups, rows_per_group, columns, inner; numbers: 0 = the widest that it has (fp32, fp16,
  // bf16), 1 = fp32, 2 = fp16, 3 = bf16.
  [[nodiscard]] static Result<Gemm> make(Device& device, const Parameters& parameters);

  [[nodiscard]] Result<void> begin(std::uint64_t seed);  // queues B, and clears the answer
  [[nodiscard]] Result<void> run_batch();                // queues the next rows
  [[nodiscard]] bool done() const { return next_row_ >= rows(); }
  [[nodiscard]] double batch_flops() const { return 2.0 * batch_rows_ * challenge_.columns * challenge_.inner; }
  // Hash and projection of every part, in turn; waits.
  [[nodiscard]] Result<probe::Words> answer();
  [[nodiscard]] std::string_view precision() const { return precision_; }

 private:
  explicit Gemm(Device& device) : device_(&device) {}
  [[nodiscard]] std::uint32_t rows() const { return challenge_.groups * challenge_.rows_per_group; }
  [[nodiscard]] Result<void> fill(Buffer& buffer, std::uint64_t seed, std::uint32_t row0, std::uint32_t count);

  Device* device_;
  probe::GemmChallenge challenge_;
  std::string precision_;    // "f32", "f16", "bf16"
  std::uint32_t tile_ = 64;  // rows and columns of a group of the kernel
  std::uint32_t batch_rows_ = 0;
  std::uint32_t next_row_ = 0;
  BufferPtr a_, b_, answer_;
};

}  // namespace gridctl::gpubench
