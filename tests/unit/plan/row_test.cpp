// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runs.hpp"

namespace gridctl::plan::testing::row_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

Row row(const std::string& line) {
  Result<Row> read = read_row(line);
  EXPECT_TRUE(read) << line << ": " << read.error().message;
  return read ? *std::move(read) : Row{};
}
std::string fault(const std::string& line) {
  const Result<Row> read = read_row(line);
  EXPECT_FALSE(read) << line;
  return read ? "" : read.error().message;
}
// A line about a model of Llama's kind with these columns more.
std::string llama(const std::string& more = "") {
  return R"({"arch":"llama","layers":32,"hidden":4096)" + (more.empty() ? "" : "," + more) + "}";
}
std::string gpt(const std::string& more = "") {
  return R"({"arch":"gpt","layers":24,"hidden":2048)" + (more.empty() ? "" : "," + more) + "}";
}

TEST(RowOfLlama, HasTheShapeThatPeopleBuild) {
  const Model m = row(llama()).training.model;
  EXPECT_EQ(m.heads, 32) << "of 128 each";
  EXPECT_EQ(m.kv_heads, 32);
  EXPECT_EQ(m.ffn, 4096 * 8 / 3);
  EXPECT_EQ(m.vocab, 32000);
  EXPECT_TRUE(m.gated_mlp);
  EXPECT_FALSE(m.tied_embeddings || m.biases || m.learned_positions);
  EXPECT_EQ(m.positions, 0);
  EXPECT_EQ(m.experts, 0);
  EXPECT_EQ(m.experts_per_token, 0);
  EXPECT_EQ(row(R"({"layers":2,"hidden":64})").training.model.heads, 1);
  EXPECT_EQ(row(R"({"layers":2,"hidden":256})").training.model.heads, 2);
}

TEST(RowOfGpt, HasPlainMlpsBiasesAndPositions) {
  const Row it = row(gpt(R"("seq_len":1024)"));
  const Model& m = it.training.model;
  EXPECT_FALSE(m.gated_mlp);
  EXPECT_TRUE(m.tied_embeddings && m.biases && m.learned_positions);
  EXPECT_EQ(m.ffn, 4 * 2048);
  EXPECT_EQ(m.vocab, 51200);
  EXPECT_EQ(m.positions, 1024);
  EXPECT_FALSE(it.training.flash_attention) << "its trainings are old";
  EXPECT_TRUE(it.training.dropout);
  EXPECT_TRUE(row(gpt(R"("framework":"fsdp2")")).training.flash_attention);
  EXPECT_FALSE(row(gpt(R"("framework":"fsdp2")")).training.dropout);
  EXPECT_FALSE(row(gpt(R"("framework":"deepspeed")")).training.flash_attention);
  EXPECT_FALSE(row(gpt(R"("framework":"megatron-deepspeed")")).training.flash_attention);
  EXPECT_EQ(row(R"({"model":"gpt2","seq_len":1024})").training.model.vocab, 50257);
  EXPECT_TRUE(row(R"({"model":"gpt2","seq_len":1024})").training.model.biases);
}

TEST(RowOfAMixture, SendsTokensToTwoExperts) {
  const auto experts = [](const std::string& more) {
    return row(R"({"arch":"moe","layers":2,"hidden":256,"experts":8)" + more + "}").training.model;
  };
  EXPECT_EQ(experts("").experts, 8);
  EXPECT_EQ(experts("").experts_per_token, 2);
  EXPECT_EQ(experts(R"(,"experts_per_token":1)").experts_per_token, 1);
  EXPECT_EQ(experts(R"(,"shared_experts":3,"expert_ffn":99)").shared_experts, 3);
  EXPECT_EQ(experts(R"(,"shared_experts":3,"expert_ffn":99)").expert_ffn, 99);
  EXPECT_TRUE(experts("").gated_mlp);
  EXPECT_FALSE(experts("").tied_embeddings);
}

TEST(RowOfAFamily, TakesItsShapeUnlessTheLineHasOne) {
  const Model known = row(R"({"model":"llama-3-8b"})").training.model;
  EXPECT_EQ(known.layers, 32);
  EXPECT_EQ(known.kv_heads, 8);
  EXPECT_EQ(known.vocab, 128256);
  EXPECT_EQ(known.ffn, 14336);
  const Model own = row(R"({"model":"llama-3-8b","layers":2,"hidden":512})").training.model;
  EXPECT_EQ(own.layers, 2);
  EXPECT_EQ(own.vocab, 32000);
  EXPECT_EQ(own.name, "llama-3-8b");
  const Row unknown = row(R"({"model":"nobody-knows-it","params":5e9})");
  EXPECT_DOUBLE_EQ(unknown.training.model.params_said, 5e9);
  EXPECT_FALSE(unknown.time_known || unknown.memory_known);
  EXPECT_TRUE(row(llama()).time_known && row(llama()).memory_known);
}

TEST(RowOfAShape, IsTakenAsSaid) {
  const Model m = row(llama(R"("heads":16,"kv_heads":4,"head_dim":64,"ffn":1000,"vocab":50,"gated_mlp":false,)"
                            R"("tied_embeddings":true,"learned_positions":true,"biases":true)"))
                      .training.model;
  EXPECT_EQ(m.heads, 16);
  EXPECT_EQ(m.kv_heads, 4);
  EXPECT_EQ(m.head_dim, 64);
  EXPECT_EQ(m.ffn, 1000);
  EXPECT_EQ(m.vocab, 50);
  EXPECT_FALSE(m.gated_mlp);
  EXPECT_TRUE(m.tied_embeddings && m.learned_positions && m.biases);
}

TEST(RowOfATraining, IsOfHalfPrecisionByMegatron) {
  const Training t = row(llama()).training;
  EXPECT_EQ(t.framework, Framework::megatron);
  EXPECT_EQ(t.precision, Precision::fp16);
  EXPECT_EQ(t.method, Method::full);
  EXPECT_EQ(t.optimizer, "adamw");
  EXPECT_EQ(t.sequence, 2048);
  EXPECT_TRUE(t.flash_attention);
  EXPECT_FALSE(t.dropout);
  EXPECT_LT(t.bytes.weight, 0);
  EXPECT_LT(t.bytes.grad, 0);
  EXPECT_LT(t.bytes.optimizer, 0);
  EXPECT_DOUBLE_EQ(t.bytes.extra, 0);
  EXPECT_EQ(row(llama(R"("framework":"fsdp")")).training.precision, Precision::bf16);
  EXPECT_EQ(row(llama(R"("precision":"fp8")")).training.precision, Precision::fp8);
  EXPECT_EQ(row(R"({"params":1e9})").training.framework, Framework::deepspeed);
  EXPECT_EQ(row(llama(R"("optimizer":"Lion")")).training.optimizer, "lion");
  EXPECT_EQ(row(llama(R"("method":"lora","trainable_params":7)")).training.trainable, 7);
  const StateBytes bytes =
      row(llama(R"("weight_bytes":2,"grad_bytes":3,"optimizer_bytes":4,"extra_bytes_per_param":5)")).training.bytes;
  EXPECT_EQ(bytes, (StateBytes{2, 3, 4, 5}));
}

TEST(RowOfALayout, HasAsManyReplicasAsGpusAreLeft) {
  const Parallelism l = row(llama(R"("tp":2,"pp":2,"n_gpus":16)")).parallelism;
  EXPECT_EQ(l.dp, 4);
  EXPECT_EQ(l.gpus(), 16);
  EXPECT_EQ(row(llama()).parallelism.dp, 1);
  EXPECT_EQ(row(llama(R"("cp":2,"n_gpus":8)")).parallelism.dp, 4);
  EXPECT_EQ(row(llama(R"("dp":3,"tp":4)")).parallelism.gpus(), 12);
  EXPECT_THAT(fault(llama(R"("tp":2,"n_gpus":1)")), HasSubstr("n_gpus 1 is not dp*tp*pp*cp = 2"));
  EXPECT_EQ(row(llama(R"("sharding":"zero2")")).parallelism.zero, 2);
  EXPECT_EQ(row(llama(R"("offload":"optimizer")")).parallelism.offload, Offload::optimizer);
}

TEST(RowOfALayout, SplitsSequencesWhereTensorsAreSplitAndKernelsAreNew) {
  EXPECT_TRUE(row(llama(R"("tp":2)")).parallelism.sequence_parallel);
  EXPECT_FALSE(row(llama()).parallelism.sequence_parallel);
  EXPECT_FALSE(row(gpt(R"("tp":2)")).parallelism.sequence_parallel);
  EXPECT_TRUE(row(gpt(R"("tp":2,"flash_attention":true)")).parallelism.sequence_parallel);
  EXPECT_FALSE(row(llama(R"("tp":2,"sequence_parallel":false)")).parallelism.sequence_parallel);
}

TEST(RowOfABatch, IsOneOfEachReplicaAndEightOfEachStage) {
  EXPECT_EQ(row(llama(R"("dp":4,"micro_batch":2)")).training.batch, 8);
  EXPECT_EQ(row(llama(R"("dp":4,"micro_batch":2,"pp":2)")).training.batch, 8 * 16);
  EXPECT_FALSE(row(llama(R"("dp":4)")).batch_said);
  EXPECT_TRUE(row(llama(R"("global_batch":7)")).batch_said);
  EXPECT_EQ(row(llama(R"("global_batch":7)")).training.batch, 7);
}

TEST(RowOfAPipeline, IsInterleavedWhereTheBubbleWouldBeLarge) {
  const auto stages = [](const std::string& more) { return row(llama(R"("pp":4,)" + more)).parallelism.virtual_stages; };
  EXPECT_EQ(stages(R"("global_batch":15)"), 4) << "less than four micro-batches for each stage";
  EXPECT_EQ(stages(R"("global_batch":16)"), 1);
  EXPECT_EQ(stages(R"("global_batch":31,"dp":2)"), 4);
  EXPECT_EQ(stages(R"("global_batch":32,"dp":2)"), 1);
  EXPECT_EQ(stages(R"("global_batch":8,"vpp":2)"), 2);
  EXPECT_TRUE(row(llama(R"("pp":4,"vpp":2)")).stages_said);
  EXPECT_FALSE(row(llama(R"("pp":4)")).stages_said);
  EXPECT_EQ(stages(R"("global_batch":8,"framework":"fsdp2")"), 1);
  EXPECT_EQ(row(gpt(R"("pp":4,"global_batch":4)")).parallelism.virtual_stages, 1);
  EXPECT_EQ(row(llama(R"("pp":16,"global_batch":16)")).parallelism.virtual_stages, 2) << "no more than it has layers";
  EXPECT_EQ(row(llama(R"("global_batch":1)")).parallelism.virtual_stages, 1) << "there is no pipeline";
}

TEST(RowOfAPipeline, OfTorchDividesTheLocalBatchItself) {
  const auto micro = [](const std::string& more) {
    return row(llama(R"("framework":"fsdp2","dp":2,"micro_batch":4,)" + more)).parallelism.micro_batch;
  };
  EXPECT_EQ(micro(R"("pp":2,"global_batch":8)"), 1);
  EXPECT_EQ(micro(R"("pp":2,"global_batch":16)"), 4);
  EXPECT_EQ(micro(R"("pp":1,"global_batch":8)"), 4);
  EXPECT_EQ(row(llama(R"("dp":2,"micro_batch":4,"pp":2,"global_batch":8)")).parallelism.micro_batch, 4) << "Megatron is told";
}

TEST(RowOfMachines, AreA100sUnlessSaid) {
  const Row usual = row(llama(R"("dp":16)"));
  EXPECT_EQ(usual.cluster.device.name, "A100 SXM4 80GB");
  EXPECT_EQ(usual.cluster.gpus_per_node, 8);
  EXPECT_EQ(row(llama(R"("dp":4)")).cluster.gpus_per_node, 4) << "no more than there are";
  EXPECT_EQ(row(llama(R"("dp":16,"gpus_per_node":2)")).cluster.gpus_per_node, 2);
  EXPECT_EQ(row(llama(R"("gpu":"H100 SXM5 80GB")")).cluster.device.gpu_class, GpuClass::hopper);
}

TEST(RowOfMachines, MayBeGivenByFigures) {
  const Device own = row(llama(R"("gpu":"our own","gpu_memory_gb":40,"gpu_tflops":100)")).cluster.device;
  EXPECT_DOUBLE_EQ(own.memory, 40e9);
  EXPECT_DOUBLE_EQ(own.flops_bf16, 100e12);
  EXPECT_EQ(own.name, "a GPU of 100 TFLOPS");
  const Device bare = row(llama(R"("gpu_memory_gb":40,"gpu_tflops":100)")).cluster.device;
  EXPECT_EQ(bare.name, own.name);
  const Device changed = row(llama(R"("gpu":"H100 SXM5 80GB","gpu_memory_gb":40,"gpu_tflops":100)")).cluster.device;
  EXPECT_EQ(changed.name, "H100 SXM5 80GB");
  EXPECT_DOUBLE_EQ(changed.memory, 40e9);
  EXPECT_DOUBLE_EQ(changed.flops_bf16, 100e12);
  EXPECT_DOUBLE_EQ(row(llama(R"("gpu":"H100 SXM5 80GB","gpu_memory_gb":40)")).cluster.device.memory, 40e9);
  EXPECT_THAT(fault(llama(R"("gpu_tflops":100)")), HasSubstr("together"));
  EXPECT_THAT(fault(llama(R"("gpu":"our own","gpu_memory_gb":40)")), HasSubstr("unknown GPU"));
}

TEST(RowOfMachines, TakesTheNetworkThatIsTold) {
  EXPECT_DOUBLE_EQ(row(llama(R"("dp":8,"interconnect":"8x200Gb/s HDR IB per node")")).cluster.inter_link, 25e9);
  EXPECT_DOUBLE_EQ(row(llama(R"("dp":8,"interconnect":"400 Gb/s per GPU")")).cluster.inter_link, 50e9);
  EXPECT_DOUBLE_EQ(row(llama(R"("dp":8,"interconnect":"100Gb/s")")).cluster.inter_link, 100e9 / 8 / 8);
  EXPECT_DOUBLE_EQ(row(llama(R"("dp":8,"interconnect":"fast")")).cluster.inter_link, row(llama(R"("dp":8)")).cluster.inter_link);
}

TEST(RowOfRecomputation, IsAsTheFrameworkDoesOrTheLeastThatFits) {
  EXPECT_EQ(row(R"({"arch":"llama","layers":2,"hidden":256,"framework":"torchtune"})").parallelism.recompute, Recompute::full);
  EXPECT_EQ(row(R"({"arch":"llama","layers":2,"hidden":256})").parallelism.recompute, Recompute::none);
  const Row said = row(R"({"arch":"llama","layers":2,"hidden":256,"act_recompute":"selective"})");
  EXPECT_EQ(said.parallelism.recompute, Recompute::selective);
  EXPECT_TRUE(said.recompute_said);
  EXPECT_FALSE(row(llama()).recompute_said);
  EXPECT_EQ(row(R"({"params":1e9})").parallelism.recompute, Recompute::none) << "nobody can tell";
}

TEST(RowOfAMeasurement, IsInSecondsAndBytes) {
  const Row it = row(llama(R"("calibrate":true,"step_time_s":1.5,"peak_mem_gb":40,"group":"a")"));
  EXPECT_TRUE(it.calibrate);
  EXPECT_EQ(it.measured_seconds, 1.5);
  EXPECT_EQ(it.measured_peak, 40e9);
  EXPECT_EQ(it.group, "a");
  EXPECT_TRUE(row(llama(R"("calibrate":true,"peak_mem_gb":40)")).calibrate) << "one of both is enough";
  EXPECT_FALSE(row(llama(R"("step_time_s":1.5)")).calibrate);
  EXPECT_FALSE(row(llama()).measured_seconds || row(llama()).measured_peak);
}

TEST(RowOfATable, HasCellsThatSayNothing) {
  const Row it = row(llama(R"("tp":" ","pp":"n/a","cp":"not stated","dp":4.0,"micro_batch":2.0)"));
  EXPECT_EQ(it.parallelism.tp, 1);
  EXPECT_EQ(it.parallelism.pp, 1);
  EXPECT_EQ(it.parallelism.cp, 1);
  EXPECT_EQ(it.parallelism.dp, 4);
  EXPECT_EQ(it.parallelism.micro_batch, 2);
  EXPECT_THAT(it.notes, IsEmpty());
  EXPECT_THAT(fault(llama(R"("dp":2.5)")), HasSubstr("dp"));
  EXPECT_THAT(row(llama(R"("zzzzqqqq":1)")).notes, ElementsAre("column 'zzzzqqqq' is unknown and was ignored"));
}

TEST(RowAtItsLimits, IsReadAndBeyondThemRefused) {
  EXPECT_EQ(row(R"({"model":"llama-2-7b","seq_len":4096})").training.sequence, 4096);
  EXPECT_THAT(fault(R"({"model":"llama-2-7b","seq_len":4097})"), HasSubstr("longer than the 4096"));
  EXPECT_EQ(row(llama(R"("pp":32)")).parallelism.pp, 32);
  EXPECT_THAT(fault(llama(R"("pp":33)")), HasSubstr("more than the 32 layers"));
  EXPECT_EQ(row(llama(R"("dp":8,"global_batch":8)")).training.batch, 8);
  EXPECT_THAT(fault(llama(R"("dp":8,"global_batch":7)")), HasSubstr("global_batch 7 is less than dp=8"));
  EXPECT_EQ(row(R"({"arch":"moe","experts":8,"ep":4,"dp":4,"layers":2,"hidden":256})").parallelism.ep, 4);
  EXPECT_EQ(row(R"({"params":1e9,"tp":3})").parallelism.tp, 3) << "nobody knows its heads";
  std::string line = llama();
  line.resize(k_row_bytes_max, ' ');
  row(line);
  EXPECT_THAT(fault(line + " "), HasSubstr("longer than 64 KiB"));
}

}  // namespace
}  // namespace gridctl::plan::testing::row_test
