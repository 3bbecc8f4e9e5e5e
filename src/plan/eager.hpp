// SPDX-License-Identifier: Apache-2.0
// Layers that run one kernel for each operator (transformers, PEFT): bytes that they keep and bytes that they move.
// Counted operator by operator on transformers 5.24, PEFT 0.21 and torch 2.15. Pure.
#pragma once

#include "plan/parallelism.hpp"

namespace gridctl::plan {

// Widths of a layer's parts in hidden units. `ffn` of a mixture is that of the experts which a token passes through.
struct Widths {
  double heads = 1, kv = 1, ffn = 0;
};
[[nodiscard]] Widths widths_of(const Model& model);

// Whether the training runs such layers. DeepSpeed runs of the time before flash attention had Megatron's.
[[nodiscard]] bool eager(const Training& training);
// Whether PEFT adds adapters to them.
[[nodiscard]] bool by_peft(const Training& training);
// Whether weights are kept in fp32 and cast for each matrix. The residual stream is fp32, too.
[[nodiscard]] bool autocast(const Training& training, const StateBytes& bytes);

// Bytes per token and hidden unit of one layer. REQUIRES: eager(training).
[[nodiscard]] double eager_kept(const Training& training, const StateBytes& bytes);   // from forward to backward
[[nodiscard]] double eager_moved(const Training& training, const StateBytes& bytes);  // by one forward pass

// Bytes that loss and its gradient move for each output value: a cast (6), log_softmax (8), backward (4 + 12 + 6).
inline constexpr double k_loss_moved = 36;

}  // namespace gridctl::plan
