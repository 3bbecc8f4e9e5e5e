// SPDX-License-Identifier: Apache-2.0
// Computes the memory that a parallelism uses on its most loaded GPU. Pure. Formulas: ZeRO (arXiv 1910.02054) for the
// states, Korthikanti et al. (2205.05198) for the activations, both with the changes for flash attention, gated MLPs,
// grouped heads and mixtures.
#pragma once

#include <algorithm>

#include "plan/parallelism.hpp"

namespace gridctl::plan {

// Holds two constants of a framework: the memory that it always keeps, and the share that its allocator wastes.
struct MemoryConstants {
  double base = 0;      // bytes: CUDA context, libraries, communication buffers
  double overhead = 1;  // factor on all that it allocates
};
[[nodiscard]] MemoryConstants memory_constants(Framework framework);

// Holds bytes on the most loaded GPU. `weights` and the two below are the states.
struct Memory {
  double params = 0;  // parameters that the GPU is responsible for, before sharding over replicas
  double weights = 0, grads = 0, optimizer = 0;
  double activations = 0;  // kept from forward to backward
  double working = 0;      // one layer, while it is recomputed or differentiated
  double logits = 0;       // output of the last stage, its loss and gradient
  double buffers = 0;      // gathered parameters, reduction buckets
  double copies = 0;       // half-precision copies of fp32 weights that autocast keeps
  bool late_grads = false;  // gradients are made in backward, in place of activations, and not while the loss is computed
  double step_copy = 0;    // what the optimizer step needs besides, when the activations are gone
  double offloaded = 0;    // in the host's memory, for this GPU
  MemoryConstants constants;

  [[nodiscard]] double states() const { return weights + grads + optimizer; }
  // Returns the sum without the constants, to which a fit of them applies.
  [[nodiscard]] double allocated() const {
    // The allocator reuses the place of activations for gradients, but not that of the larger blocks.
    if (late_grads) return weights + optimizer + buffers + copies + std::max(grads, activations) + working + logits;
    return states() + buffers + copies + std::max(activations + std::max(working, logits), step_copy);
  }
  [[nodiscard]] double peak() const { return constants.base + constants.overhead * allocated(); }
};

[[nodiscard]] Memory memory_of(const Training& training, const Parallelism& parallelism);
// Holds the figures that all parallelisms of one training share, because a search asks 100,000 times.
struct MemoryFacts {
  StateBytes bytes;
  ParamCount count;
  LayerParams dense, mixed;
  double mixture_share = 0;  // of the layers
  double trainable = 0;      // LoRA; 0: all
  double base_bytes = 2;     // a frozen weight of LoRA
  MemoryConstants constants;
};
[[nodiscard]] MemoryFacts memory_facts(const Training& training);
[[nodiscard]] Memory memory_of(const Training& training, const MemoryFacts& facts, const Parallelism& parallelism);

// Returns the bytes of one layer's activations for one micro-batch that stay until backward.
[[nodiscard]] double layer_activations(const Training& training, const Parallelism& parallelism);

inline constexpr int k_lora_rank = 16;  // where nothing else is said
// Returns the parameters of LoRA adapters of a rank on every linear layer.
[[nodiscard]] double lora_parameters(const Model& model, int rank);

}  // namespace gridctl::plan
