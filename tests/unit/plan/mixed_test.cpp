// SPDX-License-Identifier: Apache-2.0
#include "plan/mixed.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace gridctl::plan::mixed_test {
namespace {

Question group(const char* model, const char* gpu, int nodes) {
  Question out;
  out.training.model = *family(model);
  out.training.batch = 512;
  out.training.sequence = 4096;
  const sched::GpuModel* const row = *gpu_named(gpu);
  out.cluster = cluster_of(device_of(*row), row, 8);
  out.nodes = nodes;
  out.usd_per_gpu_hour = 1;
  return out;
}

TEST(MixBatches, GivesEachKindAsMuchAsItIsFast) {
  const std::vector<Question> groups{group("llama-3-8b", "H100", 2), group("llama-3-8b", "A100", 2)};
  std::vector<Plan> best;
  for (const Question& one : groups) best.push_back(search(one).best.front());
  const auto mixed = mix_batches(groups, best);
  ASSERT_TRUE(mixed);
  EXPECT_FALSE(mixed->by_layers());
  EXPECT_EQ(mixed->parts[0].batch + mixed->parts[1].batch, 512);
  EXPECT_GT(mixed->parts[0].batch, mixed->parts[1].batch);
  // Neither waits long for the other, and both are better than one.
  EXPECT_NEAR(mixed->parts[0].seconds / mixed->parts[1].seconds, 1, 0.25);
  EXPECT_GT(mixed->tokens_per_s, best[0].tokens_per_s * 1.2);
  EXPECT_LT(mixed->tokens_per_s, best[0].tokens_per_s + best[1].tokens_per_s);
  EXPECT_DOUBLE_EQ(mixed->usd_per_hour, 32);
}

TEST(MixBatches, PaysForTheExchangeOverTheSlowestLink) {
  std::vector<Question> groups{group("llama-3-8b", "H100", 1), group("llama-3-8b", "A100", 1)};
  std::vector<Plan> best;
  for (const Question& one : groups) best.push_back(search(one).best.front());
  groups[1].cluster.inter_link = 125e6 / 8;  // 1 Gbit/s for eight GPUs
  const auto mixed = mix_batches(groups, best);
  ASSERT_TRUE(mixed);
  EXPECT_NEAR(mixed->exchange, 2 * 0.5 * count_params(groups[0].training.model).total * 2 / 125e6, 0.5);
}

TEST(MixBatches, IsNothingForABatchThatCannotBeShared) {
  std::vector<Question> groups{group("llama-3-8b", "H100", 2), group("llama-3-8b", "A100", 2)};
  std::vector<Plan> best;
  for (const Question& one : groups) best.push_back(search(one).best.front());
  for (Question& one : groups) one.training.batch = 16;
  EXPECT_FALSE(mix_batches(groups, best));
}

TEST(MixLayers, HoldWhatNoKindHoldsAlone) {
  // Without offloading 1.27 TB of states are too much for 0.64 TB, and for 1.36 TB with all else.
  const std::vector<Question> groups{group("llama-3-70b", "H100", 1), group("llama-3-70b", "A100 SXM4 40GB", 4)};
  const auto mixed = mix_layers(groups);
  ASSERT_TRUE(mixed);
  ASSERT_TRUE(mixed->by_layers());
  int layers = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    layers += std::accumulate(mixed->parts[i].layers.begin(), mixed->parts[i].layers.end(), 0);
    EXPECT_LE(mixed->parts[i].peak, groups[i].cluster.device.memory);
  }
  EXPECT_EQ(layers, groups[0].training.model.layers);
  EXPECT_GT(mixed->parts[0].layers.front(), mixed->parts[1].layers.front());
}

TEST(MixLayers, AreNothingWhereTogetherTheyHoldTooLittle) {
  const std::vector<Question> groups{group("llama-3.1-405b", "H100", 1), group("llama-3.1-405b", "A100", 1)};
  EXPECT_FALSE(mix_layers(groups));
}

}  // namespace
}  // namespace gridctl::plan::mixed_test
