// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.hpp"

#include <gtest/gtest.h>

namespace gridctl::plan::memory_test {
namespace {

Training of(const char* name) {
  Training training;
  training.model = *family(name);
  training.batch = 64;
  return training;
}

TEST(Memory, ShardingDividesWhatItsStageSays) {
  Training training = of("llama-3-8b");
  training.framework = Framework::deepspeed;  // 2 + 2 + 12 bytes
  const double n = count_params(training.model).total;
  const double expected[] = {16, 4 + 12.0 / 8, 2 + 14.0 / 8, 16.0 / 8};
  for (int stage = 0; stage <= 3; ++stage) {
    Parallelism parallelism{.dp = 8, .zero = stage};
    EXPECT_NEAR(memory_of(training, parallelism).states() / n, expected[stage], 0.01) << stage;
  }
}

TEST(Memory, OffloadMovesTheOptimizerIntoTheHostsMemory) {
  const Training training = of("llama-3-8b");
  Parallelism parallelism{.dp = 8, .zero = 3};
  const Memory here = memory_of(training, parallelism);
  parallelism.offload = Offload::optimizer;
  const Memory there = memory_of(training, parallelism);
  EXPECT_EQ(there.optimizer, 0);
  EXPECT_DOUBLE_EQ(there.offloaded, here.optimizer);
}

TEST(Memory, OffloadedActivationsAreThoseOfTwoLayers) {
  const Training training = of("llama-3-8b");
  Parallelism parallelism{.recompute = Recompute::full};
  const Memory here = memory_of(training, parallelism);
  parallelism.offload = Offload::activations;
  const Memory there = memory_of(training, parallelism);
  EXPECT_DOUBLE_EQ(there.activations, here.activations * 2 / training.model.layers);
  EXPECT_DOUBLE_EQ(there.activations + there.offloaded, here.activations);
  EXPECT_DOUBLE_EQ(there.states(), here.states());
}

// Embedding and head of 2 x 525M parameters in 2 bytes each.
TEST(Memory, FsdpKeepsTheRootUnitGathered) {
  Training training = of("llama-3-8b");
  const ParamCount count = count_params(training.model);
  training.framework = Framework::fsdp2;
  const double whole = memory_of(training, {.dp = 8, .zero = 3}).buffers;
  EXPECT_GT(whole, 2 * (count.embedding + count.head));
  training.framework = Framework::torchtune;  // units of their own
  EXPECT_LT(memory_of(training, {.dp = 8, .zero = 3}).buffers, whole - 2 * count.embedding);
}

TEST(Memory, PlainOperationsKeepMoreThanFusedOnes) {
  Training training = of("llama-3-8b");
  training.framework = Framework::torchtune;
  const double fused = layer_activations(training, {});
  training.framework = Framework::litgpt;
  const double tokens = static_cast<double>(training.sequence);
  EXPECT_DOUBLE_EQ(layer_activations(training, {}) - fused, tokens * (4.0 * training.model.hidden + 2.0 * training.model.ffn));
}

TEST(Memory, AnOptimizerInsideBackwardStillNeedsTheLargestGradient) {
  Training training = of("llama-3-8b");
  training.framework = Framework::torchtune;
  const double before = memory_of(training, {}).buffers;
  training.bytes.grad = 0;
  EXPECT_DOUBLE_EQ(memory_of(training, {}).buffers - before, 2 * count_params(training.model).head);
}

TEST(Memory, RecomputationKeepsLessInTheOrderOfItsNames) {
  const Training training = of("llama-3-8b");
  Parallelism parallelism;
  double before = 1e300;
  for (const Recompute one : {Recompute::none, Recompute::selective, Recompute::full}) {
    parallelism.recompute = one;
    const double now = memory_of(training, parallelism).activations;
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(Memory, AdaptersNeedFarLessThanAllParameters) {
  Training training = of("llama-3-8b");
  const double full = memory_of(training, {}).states();
  training.method = Method::lora;
  const double lora = memory_of(training, {}).states();
  training.method = Method::qlora;
  const double qlora = memory_of(training, {}).states();
  EXPECT_LT(lora, full / 5);
  EXPECT_LT(qlora, lora / 2);
  EXPECT_GT(qlora, 8.03e9 * 0.5);
}

TEST(Memory, ExpertParallelismDividesTheExpertsOnly) {
  const Training training = of("mixtral-8x7b");
  Parallelism parallelism{.dp = 8};
  const double whole = memory_of(training, parallelism).params;
  parallelism.ep = 8;
  const ParamCount count = count_params(training.model);
  EXPECT_NEAR(memory_of(training, parallelism).params, whole - count.experts * 7 / 8, 1e6);
}

TEST(Memory, EmbeddingsCountAsLayersWhereThatDividesThem) {
  EXPECT_DOUBLE_EQ(stages_of(126, 16).first, 7);
  EXPECT_DOUBLE_EQ(stages_of(126, 16).most, 8);
  EXPECT_DOUBLE_EQ(stages_of(80, 8).most, 10);
  EXPECT_DOUBLE_EQ(stages_of(77, 8).most, 10);
}

}  // namespace
}  // namespace gridctl::plan::memory_test
