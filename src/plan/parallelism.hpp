// SPDX-License-Identifier: Apache-2.0
// Describes how a training is divided over GPUs, and names the parts. Pure.
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
// Names the parts that lie in the host's memory. `all`: states, not activations, which only torchtune's recipes move,
// and no search proposes it.
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
// Parses the stage: "zero3", "ZeRO-3", "fsdp", "none".
[[nodiscard]] std::optional<int> sharding_of(std::string_view text);

// Holds the degrees, whose product is the number of GPUs; ep divides dp.
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
// Returns "dp=4 tp=8 pp=2 zero=1 mb=2 recompute=selective", without degrees of one.
[[nodiscard]] std::string text_of(const Parallelism& parallelism);

// Holds the bytes kept for each parameter. Negative: the usual ones.
struct StateBytes {
  double weight = -1, grad = -1, optimizer = -1;
  double extra = 0;  // kept whole on every replica
  bool operator==(const StateBytes&) const = default;
};

// Describes a training, regardless of its division.
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

// Returns the bytes of a known optimizer's state for each parameter, without the master copy of the weights.
[[nodiscard]] std::optional<double> optimizer_bytes(std::string_view name);
// Returns the bytes with all omitted values filled in.
[[nodiscard]] StateBytes usual_bytes(const Training& training);

// Returns the framework that is assumed for a method if none is named: PEFT for adapters, otherwise transformers.
[[nodiscard]] Framework usual_framework(Method method, int gpus, Framework of_full);
// Returns whether the framework divides models: tensor, pipeline, context and expert parallelism.
[[nodiscard]] bool divides_models(Framework framework);
// Returns the ZeRO stages that the framework has.
[[nodiscard]] std::vector<int> sharding_stages(Framework framework);
// Returns whether the framework recomputes a part of each layer. transformers can only recompute complete layers.
[[nodiscard]] bool recomputes_parts(Framework framework);
// Returns whether it can shard gradients and parameters inside a pipeline: FSDP2 keeps them gathered through a step
// there.
[[nodiscard]] bool shards_in_pipelines(Framework framework);

// Returns the micro-batches of a step on one replica. REQUIRES: a valid parallelism.
[[nodiscard]] std::int64_t micro_batches(const Training& training, const Parallelism& parallelism);
// Holds the layers of the largest stage, and whether the embeddings count as layers (L+2 divisible by pp where L is
// not).
struct Stages {
  double most = 0, first = 0, last = 0;
};
[[nodiscard]] Stages stages_of(int layers, int pp);

// Returns the reasons why the training cannot run that way, one line each; empty if it can.
[[nodiscard]] std::vector<std::string> faults_of(const Training& training, const Parallelism& parallelism);
// Checks for the first of these reasons without the text, for search, which asks 100,000 times.
[[nodiscard]] bool possible(const Training& training, const Parallelism& parallelism);

}  // namespace gridctl::plan
