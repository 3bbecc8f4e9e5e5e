// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that layers with one kernel per operator (transformers, PEFT) keep and move. Counted operator by
// operator on transformers 5.24, PEFT 0.21 and torch 2.15. Pure.
#pragma once

#include "plan/parallelism.hpp"

namespace gridctl::plan {

// Holds widths of a layer's parts in hidden units. For a mixture, `ffn` is the width of the experts that a token passes
// through.
struct Widths {
  double heads = 1, kv = 1, ffn = 0;
};
[[nodiscard]] Widths widths_of(const Model& model);

// Returns whether the training runs such layers. DeepSpeed runs of the time before flash attention used Megatron's.
[[nodiscard]] bool eager(const Training& training);
// Returns whether PEFT adds adapters to them.
[[nodiscard]] bool by_peft(const Training& training);
// Returns whether weights are kept in fp32 and cast for each matrix. The residual stream is then fp32, too.
[[nodiscard]] bool autocast(const Training& training, const StateBytes& bytes);

// Returns the bytes per token and hidden unit that one layer keeps. REQUIRES: eager(training).
[[nodiscard]] double eager_kept(const Training& training, const StateBytes& bytes);   // from forward to backward
[[nodiscard]] double eager_moved(const Training& training, const StateBytes& bytes);  // by one forward pass

// Counts the bytes that the loss and its gradient move for each output value: a cast (6), log_softmax (8), backward (4
// + 12 + 6).
inline constexpr double k_loss_moved = 36;

}  // namespace gridctl::plan
