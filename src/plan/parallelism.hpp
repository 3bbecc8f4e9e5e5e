// SPDX-License-Identifier: Apache-2.0
// How a training is laid over GPUs, and the words for it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/model.hpp"

namespace gridctl::plan {

inline constexpr double k_giga = 1e9;

enum class Precision : std::uint8_t { fp32, fp16, bf16, fp8, fp4 };
enum class Recompute : std::uint8_t { none, selective, full };
enum class Framework : std::uint8_t { megatron, megatron_deepspeed, deepspeed, fsdp, fsdp2, torchtune, litgpt, ddp, transformers };
enum class Method : std::uint8_t { full, lora, qlora };
// Parts that lie in the host's memory. `all`: states, not activations; those only torchtune's recipes move, and no search
// proposes it.
enum class Offload : std::uint8_t { none, optimizer, all, activations };

[[nodiscard]] std::string_view text_of(Precision value);
[[nodiscard]] std::string_view text_of(Recompute value);
[[nodiscard]] std::string_view text_of(Framework value);
[[nodiscard]] std::string_view text_of(Method value);
[[nodiscard]] std::string_view text_of(Offload value);
[[nodiscard]] std::optional<Precision> precision_of(std::string_view text);
[[nodiscard]] std::optional<Recompute> recompute_of(std::string_view text);
[[nodiscard]] std::optional<Framework> framework_of(std::string_view text);
[[nodiscard]] std::optional<Method> method_of(std::string_view text);
[[nodiscard]] std::optional<Offload> offload_of(std::string_view text);
// "zero3", "ZeRO-3", "fsdp", "none": the stage.
[[nodiscard]] std::optional<int> sharding_of(std::string_view text);

// Degrees multiply to the number of GPUs; ep divides dp.
struct Parallelism {
  int dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
  int zero = 0;  // ZeRO stage: 1 optimizer, 2 and gradients, 3 and parameters sharded over dp*cp
  int virtual_stages = 1;
  int micro_batch = 1;  // sequences
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  Offload offload = Offload::none;

  [[nodiscard]] int gpus() const { return dp * tp * pp * cp; }
  bool operator==(const Parallelism&) const = default;
};
// "dp=4 tp=8 pp=2 zero=1 mb=2 recompute=selective"; degrees of one left off.
[[nodiscard]] std::string text_of(const Parallelism& parallelism);

// Bytes kept for each parameter. Negative: the usual ones.
struct StateBytes {
  double weight = -1, grad = -1, optimizer = -1;
  double extra = 0;  // kept whole on every replica
  bool operator==(const StateBytes&) const = default;
};

// A training, however it is divided.
struct Training {
  Model model;
  std::int64_t sequence = 2048;
  std::int64_t batch = 1;  // sequences in a step, all replicas together
  Precision precision = Precision::bf16;
  Method method = Method::full;
  double trainable = 0;  // parameters of LoRA; 0: those of rank 16 on every linear layer
  std::string optimizer = "adamw";
  Framework framework = Framework::fsdp2;
  bool flash_attention = true;
  bool dropout = false;
  bool fused_mlp = false;  // one kernel for GELU where each operator has a kernel of its own
  StateBytes bytes;
};

// Known optimizers and the bytes of their state for each parameter, without the master copy of the weights.
[[nodiscard]] std::optional<double> optimizer_bytes(std::string_view name);
// With all that was not said filled in.
[[nodiscard]] StateBytes usual_bytes(const Training& training);

// The framework that is assumed for a method when none is named: adapters are PEFT's, beside transformers.
[[nodiscard]] Framework usual_framework(Method method, int gpus, Framework of_full);
// Whether the framework divides models: tensor, pipeline, context and expert parallelism.
[[nodiscard]] bool divides_models(Framework framework);
// ZeRO stages that the framework has.
[[nodiscard]] std::vector<int> sharding_stages(Framework framework);
// Whether the framework recomputes a part of each layer. transformers recompute whole layers only.
[[nodiscard]] bool recomputes_parts(Framework framework);
// Whether it can shard gradients and parameters inside a pipeline: FSDP2 keeps them gathered through a step there.
[[nodiscard]] bool shards_in_pipelines(Framework framework);

// Micro-batches of a step on one replica. REQUIRES: a valid parallelism.
[[nodiscard]] std::int64_t micro_batches(const Training& training, const Parallelism& parallelism);
// Layers of the stage that has most, and whether the embeddings count as layers (L+2 divisible by pp where L is not).
struct Stages {
  double most = 0, first = 0, last = 0;
};
[[nodiscard]] Stages stages_of(int layers, int pp);

// Reasons why the training cannot run so, one line each; empty when it can.
[[nodiscard]] std::vector<std::string> faults_of(const Training& training, const Parallelism& parallelism);
// The first of them without the text: for search, which asks 100,000 times.
[[nodiscard]] bool possible(const Training& training, const Parallelism& parallelism);

}  // namespace gridctl::plan
