// SPDX-License-Identifier: Apache-2.0
#include "plan/beyond.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/serve.hpp"

namespace gridctl::plan::beyond_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LayersBySpeed, MakeTheSlowestStageAsQuickAsCanBe) {
  const std::vector<double> speeds{1, 2, 3};
  const std::vector<int> most{60, 60, 60};
  EXPECT_THAT(*layers_by_speed(60, speeds, most), ElementsAre(10, 20, 30));
  // Every other division of a few layers is at least as slow.
  const std::vector<int> found = *layers_by_speed(7, speeds, most);
  const auto slowest = [&](int a, int b, int c) { return std::max({a / 1.0, b / 2.0, c / 3.0}); };
  for (int a = 1; a < 7; ++a)
    for (int b = 1; a + b < 7; ++b) EXPECT_LE(slowest(found[0], found[1], found[2]), slowest(a, b, 7 - a - b));
}

TEST(LayersBySpeed, RespectWhatTheMemoryHolds) {
  const std::vector<double> speeds{1, 10};
  EXPECT_THAT(*layers_by_speed(20, speeds, std::vector<int>{20, 8}), ElementsAre(12, 8));
  EXPECT_FALSE(layers_by_speed(20, speeds, std::vector<int>{10, 8}));
}

TEST(BatchBySpeed, AddsUpToTheBatch) {
  EXPECT_THAT(batch_by_speed(12, std::vector<double>{1, 2, 3}), ElementsAre(2, 4, 6));
  const std::vector<int> odd = batch_by_speed(10, std::vector<double>{1, 1, 1});
  EXPECT_EQ(std::accumulate(odd.begin(), odd.end(), 0), 10);
}

// 7e9 parameters in fp32 over 1 Gbit/s: 2 * 28 GB / 125 MB/s = 448 s an exchange.
TEST(Wan, ExchangesNoOftenerThanTheLinkAllows) {
  const Wan wan{.bytes_per_s = 125e6, .step_s = 10, .params = 7e9, .bytes_per_param = 4};
  const auto plan = plan_wan(wan);
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->sync_s, 448, 0.1);
  EXPECT_EQ(plan->inner_steps, 200);
  EXPECT_NEAR(plan->utilisation, 2000.0 / 2448, 1e-6);
}

TEST(Wan, IsRefusedWithTheNumbers) {
  const auto plan = plan_wan({.bytes_per_s = 1e6, .step_s = 1, .params = 70e9, .bytes_per_param = 4});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("8.0 Mbit/s is too slow"));
  EXPECT_EQ(exit_code(plan.error().code), 4);
}

ServeQuestion serve(const char* model, const char* gpu, int tp) {
  ServeQuestion out;
  out.model = *family(model);
  const sched::GpuModel* const row = *gpu_named(gpu);
  out.cluster = cluster_of(device_of(*row), row, 8);
  out.tp = tp;
  return out;
}

TEST(Serve, TheCacheOfATokenIsAKeyAndAValueOfEachHeadAndLayer) {
  EXPECT_DOUBLE_EQ(plan_serve(serve("llama-3-8b", "H100", 1)).cache_per_token, 2.0 * 32 * 8 * 128 * 2);
  EXPECT_DOUBLE_EQ(plan_serve(serve("llama-2-7b", "H100", 1)).cache_per_token, 2.0 * 32 * 32 * 128 * 2);
  EXPECT_DOUBLE_EQ(plan_serve(serve("deepseek-v3", "H200", 8)).cache_per_token, 61.0 * (512 + 64) * 2);
}

TEST(Serve, TakesAsFewGpusAsHoldTheModel) {
  EXPECT_EQ(least_tp(serve("llama-3-8b", "H100", 1)), 1);
  EXPECT_EQ(least_tp(serve("llama-3-70b", "H100", 1)), 2);
  EXPECT_EQ(least_tp(serve("llama-3.1-405b", "H100", 1)), 0);
}

TEST(Serve, ABatchIsFasterThanOneAndBoundedByArithmetic) {
  const ServePlan plan = plan_serve(serve("llama-3-8b", "H100", 1));
  EXPECT_GT(plan.tokens_per_s_all, plan.tokens_per_s_one);
  EXPECT_LE(plan.tokens_per_s_all, plan.prefill_per_s);
  EXPECT_LT(plan.tokens_per_s_one, 3.35e12 / 16e9);  // the weights are read for each token
}

}  // namespace
}  // namespace gridctl::plan::beyond_test
