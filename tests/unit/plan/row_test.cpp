// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs.hpp"

namespace gridctl::plan::testing::row_test {
namespace {
using ::testing::HasSubstr;

Json answer(const std::string& line) { return Json::parse(Estimator().answer(line)); }

TEST(Row, ParametersReplicasAndShardingAreEnoughForTheStates) {
  const Json out = answer(R"({"params":7.5e9,"dp":64,"sharding":"zero3"})");
  EXPECT_DOUBLE_EQ(out["state_gb"].get<double>(), 1.875);
  EXPECT_FALSE(out.contains("step_time_s"));
}

TEST(Row, EmptyCellsAndNumbersAsFloatsAreThoseOfATable) {
  const Json out = answer(
      R"({"arch":"llama","layers":32.0,"hidden":4096.0,"ffn":14336,"heads":32,"kv_heads":8,"vocab":128256,"tp":"","vpp":"n/a"})");
  EXPECT_NEAR(out["params"].get<double>(), 8.03e9, 0.01e9);
}

TEST(Row, BytesThatARunKeepsAreTakenAsSaid) {
  const Json out = answer(
      R"({"params":1e9,"dp":4,"sharding":"zero1","weight_bytes":2,"grad_bytes":2,"optimizer_bytes":4,"extra_bytes_per_param":4})");
  EXPECT_DOUBLE_EQ(out["state_gb"].get<double>(), 2 + 2 + 1 + 4);
}

TEST(Row, AColumnThatNobodyKnowsIsToldAndNotUsed) {
  EXPECT_THAT(answer(R"({"params":1e9,"shardin":"zero3"})")["notes"][0].get<std::string>(),
              HasSubstr("did you mean 'sharding'?"));
}

TEST(Row, CalibrationChangesTheRowsAfterItInItsGroupOnly) {
  const std::string run =
      R"({"arch":"llama","layers":32,"hidden":4096,"heads":32,"gpu":"A100-SXM4-80GB","dp":8,"sharding":"zero3","global_batch":64)";
  Estimator estimator;
  const double before = Json::parse(estimator.answer(run + "}"))["step_time_s"].get<double>();
  const std::string twice = R"(,"group":"a","calibrate":true,"step_time_s":)" + std::to_string(2 * before) + "}";
  (void)estimator.answer(run + twice);
  EXPECT_NEAR(Json::parse(estimator.answer(run + R"(,"group":"a"})"))["step_time_s"].get<double>(), 2 * before,
              before * 0.01);
  EXPECT_DOUBLE_EQ(Json::parse(estimator.answer(run + R"(,"group":"b"})"))["step_time_s"].get<double>(), before);
}

TEST(Row, WhatIsNotSaidOfRecomputationIsTheLeastThatFits) {
  const std::string run =
      R"({"arch":"llama","layers":80,"hidden":8192,"ffn":28672,"heads":64,"kv_heads":8,"vocab":128256,"seq_len":8192,"gpu":"H100-SXM5-80GB","dp":64,"sharding":"zero3","framework":"fsdp2")";
  EXPECT_EQ(read_row(run + "}")->parallelism.recompute, Recompute::full);
  EXPECT_EQ(read_row(R"({"arch":"llama","layers":4,"hidden":512,"heads":8})")->parallelism.recompute, Recompute::none);
}

struct Wrong {
  const char* line;
  const char* says;
};
class WrongRow : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongRow, IsAnsweredWithOneClearLine) {
  const Json out = answer(GetParam().line);
  ASSERT_TRUE(out.contains("error")) << out.dump();
  const std::string text = out["error"];
  EXPECT_THAT(text, HasSubstr(GetParam().says));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}
#define LLAMA "\"arch\":\"llama\",\"layers\":32,\"hidden\":4096,\"heads\":32"
INSTANTIATE_TEST_SUITE_P(
    All, WrongRow,
    ::testing::Values(Wrong{"nonsense", "not JSON"}, Wrong{"[1]", "not a JSON object"},
                      Wrong{"{}", "give params, or layers"}, Wrong{"{\"params\":-1}", "params"},
                      Wrong{"{\"params\":\"many\"}", "params"}, Wrong{"{\"layers\":12}", "give params"},
                      Wrong{"{" LLAMA ",\"tp\":3}", "32 heads cannot be divided by tp=3"},
                      Wrong{"{" LLAMA ",\"tp\":0}", "tp"}, Wrong{"{" LLAMA ",\"pp\":33}", "more than the 32 layers"},
                      Wrong{"{" LLAMA ",\"cp\":3}", "seq_len 2048"}, Wrong{"{" LLAMA ",\"ep\":2}", "no experts"},
                      Wrong{"{\"arch\":\"moe\",\"layers\":2,\"hidden\":64}", "experts is missing"},
                      Wrong{"{\"arch\":\"moe\",\"experts\":8,\"experts_per_token\":9,\"layers\":2,\"hidden\":64}",
                            "9 experts per token"},
                      Wrong{"{\"arch\":\"moe\",\"experts\":8,\"ep\":3,\"dp\":3,\"layers\":2,\"hidden\":64}",
                            "8 experts cannot be divided"},
                      Wrong{"{\"arch\":\"rnn\",\"params\":1e9}", "arch 'rnn'"},
                      Wrong{"{\"params\":1e9,\"sharding\":\"zero4\"}", "sharding 'zero4'"},
                      Wrong{"{\"params\":1e9,\"precision\":\"int3\"}", "precision 'int3'"},
                      Wrong{"{\"params\":1e9,\"framework\":\"jax\"}", "framework 'jax'"},
                      Wrong{"{\"params\":1e9,\"optimizer\":\"magic\"}", "optimizer 'magic'"},
                      Wrong{"{\"params\":1e9,\"act_recompute\":\"some\"}", "act_recompute 'some'"},
                      Wrong{"{\"params\":1e9,\"gpu\":\"H1000\"}", "unknown GPU 'H1000'"},
                      Wrong{"{\"params\":1e9,\"gpu_memory_gb\":80}", "together"},
                      Wrong{"{" LLAMA ",\"dp\":8,\"n_gpus\":7}", "n_gpus 7"},
                      Wrong{"{" LLAMA ",\"dp\":8,\"global_batch\":4}", "global_batch 4"},
                      Wrong{"{" LLAMA ",\"kv_heads\":5}", "not divisible by 5 key-value heads"},
                      Wrong{"{\"layers\":2,\"hidden\":100,\"heads\":3}", "not divisible by 3 heads"},
                      Wrong{"{\"params\":1e9,\"calibrate\":true}", "calibrate needs step_time_s"},
                      Wrong{"{\"params\":1e9,\"calibrate\":\"maybe\"}", "calibrate"},
                      Wrong{"{\"model\":\"llama-2-7b\",\"seq_len\":8192}", "longer than the 4096"},
                      Wrong{"{\"params\":1e9,\"dp\":1e30}", "dp"},
                      Wrong{"{\"params\":1e9,\"weight_bytes\":99}", "weight_bytes"}));
#undef LLAMA

}  // namespace
}  // namespace gridctl::plan::testing::row_test
