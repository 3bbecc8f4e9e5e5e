// SPDX-License-Identifier: Apache-2.0
// What a parallelism keeps in the memory of its most loaded GPU. Pure. Formulas: ZeRO (arXiv 1910.02054) for the states,
// Korthikanti et al. (2205.05198) for the activations, both with what flash attention, gated MLPs, grouped heads and
// mixtures change.
#pragma once

#include "plan/parallelism.hpp"

namespace gridctl::plan {

// Two constants of a framework: what it keeps of memory whatever the job, and how much its allocator wastes.
struct MemoryConstants {
  double base = 0;      // bytes: CUDA context, libraries, communication buffers
  double overhead = 1;  // factor on all that it allocates
};
[[nodiscard]] MemoryConstants memory_constants(Framework framework);

// Bytes on the most loaded GPU. `weights` and the two below are the states.
struct Memory {
  double params = 0;  // parameters that the GPU is responsible for, before sharding over replicas
  double weights = 0, grads = 0, optimizer = 0;
  double activations = 0;  // kept from forward to backward
  double working = 0;      // one layer, while it is recomputed or differentiated
  double logits = 0;       // output of the last stage, its loss and gradient
  double buffers = 0;      // gathered parameters, reduction buckets
  double step_copy = 0;    // what the optimizer step needs besides, when the activations are gone
  double offloaded = 0;    // in the host's memory, for this GPU
  MemoryConstants constants;

  [[nodiscard]] double states() const { return weights + grads + optimizer; }
  // Without the constants: what a fit of them works on.
  [[nodiscard]] double allocated() const {
    const double computing = activations + (working > logits ? working : logits);
    return states() + buffers + (computing > step_copy ? computing : step_copy);
  }
  [[nodiscard]] double peak() const { return constants.base + constants.overhead * allocated(); }
};

[[nodiscard]] Memory memory_of(const Training& training, const Parallelism& parallelism);
// What does not change between the parallelisms of one training, for those who ask 100,000 times.
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

// Bytes of one layer's activations for one micro-batch that stay until backward.
[[nodiscard]] double layer_activations(const Training& training, const Parallelism& parallelism);

// Parameters of LoRA adapters of a rank on every linear layer.
[[nodiscard]] double lora_parameters(const Model& model, int rank);

}  // namespace gridctl::plan
