// SPDX-License-Identifier: Apache-2.0
#include "plan/serve.hpp"

#include <gtest/gtest.h>

#include "questions.hpp"

namespace gridctl::plan::serve_test {
namespace {

using testing::question;

TEST(Serving, IsBoundByWhatIsReadForEachToken) {
  ServeQuestion asked;
  asked.model = *family("llama-3-8b");
  asked.cluster = question(8, 1).cluster;
  const double n = count_params(asked.model).total;
  const ServePlan plan = plan_serve(asked);
  EXPECT_DOUBLE_EQ(plan.weights, 2 * n);
  EXPECT_DOUBLE_EQ(plan.cache_per_token, 32 * 2 * 8 * 128 * 2.0);
  EXPECT_DOUBLE_EQ(plan.cache, asked.cluster.device.memory * 0.9 - 1.5e9 - plan.weights);
  EXPECT_DOUBLE_EQ(plan.sequences, std::floor(plan.cache / (plan.cache_per_token * 8192)));
  EXPECT_TRUE(plan.fits);
  EXPECT_GT(plan.tokens_per_s_all, plan.tokens_per_s_one);
  asked.tp = 4;
  EXPECT_DOUBLE_EQ(plan_serve(asked).weights, 2 * n / 4);
  EXPECT_DOUBLE_EQ(plan_serve(asked).cache_per_token, plan.cache_per_token / 4);
  asked.tp = 16;
  EXPECT_DOUBLE_EQ(plan_serve(asked).cache_per_token, plan.cache_per_token / 8) << "eight key-value heads are not divided further";
}

TEST(Serving, KeepsEmbeddingAndHeadInHalfPrecision) {
  ServeQuestion asked;
  asked.model = *family("llama-3-8b");
  asked.cluster = question(8, 1).cluster;
  asked.weight_bytes = 0.55;
  const ParamCount count = count_params(asked.model);
  const double ends = count.embedding + count.head;
  EXPECT_DOUBLE_EQ(weights_of(asked), 2 * ends + 0.55 * (count.total - ends));
  EXPECT_NEAR(weights_of(asked), 5.9e9, 0.1e9);
}

TEST(Serving, SharesAModelByWhatEachGpuServes) {
  ServeQuestion asked;
  asked.model = *family("llama-3-70b");
  asked.cluster = question(8, 1).cluster;
  EXPECT_EQ(best_tp(asked), 8) << "two GPUs hold it and have room for three conversations";
  asked.model = *family("llama-3-8b");
  const int best = best_tp(asked);
  const auto each = [&](int tp) {
    asked.tp = tp;
    return plan_serve(asked).tokens_per_s_all / tp;
  };
  for (const int tp : {1, 2, 4, 8}) EXPECT_LE(each(tp), each(best)) << tp;
}

TEST(Serving, NeedsTheLeastGpusThatHoldIt) {
  ServeQuestion asked;
  asked.model = *family("llama-3-8b");
  asked.cluster = question(8, 1).cluster;
  EXPECT_EQ(least_tp(asked), 1);
  asked.model = *family("llama-3-70b");
  EXPECT_EQ(least_tp(asked), 2) << "141 GB of weights";
  asked.cluster.fast_domain = 1;
  EXPECT_EQ(least_tp(asked), 0);
  asked.cluster.fast_domain = 2;
  EXPECT_EQ(least_tp(asked), 2) << "all that the fast link joins";
  asked.model.heads = 63;
  EXPECT_EQ(least_tp(asked), 0);
  asked.model = *family("llama-3-8b");
  asked.context = 1e9;
  EXPECT_EQ(least_tp(asked), 0) << "not one conversation";
}

}  // namespace
}  // namespace gridctl::plan::serve_test
