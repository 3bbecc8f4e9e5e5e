// SPDX-License-Identifier: Apache-2.0
#include "plan/emit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <map>
#include <set>

#include "base/text.hpp"

namespace gridctl::plan::emit_test {
namespace {
using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Question asked() {
  Question out;
  out.training.model = *family("llama-3-8b");
  out.training.sequence = 8192;
  out.training.batch = 128;
  const sched::GpuModel* const row = *gpu_named("H100 SXM5 80GB");
  out.cluster = cluster_of(device_of(*row), row, 8);
  out.nodes = 2;
  out.tokens = 1e9;
  return out;
}
std::map<std::string, std::string> files_of(Target target, const Parallelism& parallelism) {
  const Question question = asked();
  const Plan plan = plan_of(question, timing_facts(question.training, question.cluster), parallelism);
  const auto files = emit({target, "llama-3-8b", "H100 SXM5 80GB"}, question, plan);
  EXPECT_TRUE(files) << files.error().message;
  std::map<std::string, std::string> out;
  if (files)
    for (const EmittedFile& file : *files) out[file.name] = file.text;
  return out;
}

TEST(Emit, TheJobFileHasTheShapeOfTheGang) {
  const auto files = files_of(Target::torchrun, {.dp = 16});
  EXPECT_THAT(files.at("job.yaml"), HasSubstr("accelerators: \"H100-SXM5-80GB:8\""));
  EXPECT_THAT(files.at("job.yaml"), HasSubstr("num_nodes: 2"));
}

// gridctl starts one rank for each GPU: a second launcher in the job would start as many again for each.
TEST(Emit, RanksAreStartedOnce) {
  for (const Target target : {Target::torchrun, Target::fsdp, Target::deepspeed, Target::megatron, Target::torchtitan}) {
    const auto files = files_of(target, {.dp = 16, .zero = target == Target::torchrun ? 0 : target == Target::megatron ? 1 : 3});
    EXPECT_THAT(files.at("job.yaml"), HasSubstr("launcher: torchrun\n"));
    for (const auto& [name, text] : files) EXPECT_THAT(text, Not(HasSubstr("torchrun "))) << name;
  }
  const std::string job = files_of(Target::accelerate, {.dp = 16, .zero = 3}).at("job.yaml");
  EXPECT_THAT(job, HasSubstr("launcher: plain\n"));
  EXPECT_THAT(job, HasSubstr("run: python3 -m accelerate.commands.launch --config_file accelerate.yaml --machine_rank"));
}

TEST(Emit, DeepSpeedsBatchIsMicroBatchTimesStepsTimesGpus) {
  const auto files = files_of(Target::deepspeed, {.dp = 16, .zero = 3, .micro_batch = 2, .recompute = Recompute::full});
  const Json config = Json::parse(files.at("ds_config.json")), arguments = Json::parse(files.at("training_args.json"));
  EXPECT_EQ(config["train_batch_size"], 128);
  EXPECT_EQ(config["train_micro_batch_size_per_gpu"].get<int>() * config["gradient_accumulation_steps"].get<int>() * 16,
            128);
  EXPECT_EQ(config["zero_optimization"]["stage"], 3);
  EXPECT_EQ(config["bf16"]["enabled"], true);
  EXPECT_EQ(arguments["per_device_train_batch_size"], 2) << "transformers refuse another one than DeepSpeed's";
  EXPECT_EQ(arguments["gradient_checkpointing"], true);
}

TEST(Emit, FsdpAndAccelerateSayTheSameStrategy) {
  const Json arguments = Json::parse(files_of(Target::fsdp, {.dp = 16, .zero = 2}).at("training_args.json"));
  EXPECT_EQ(arguments["fsdp"], "shard_grad_op auto_wrap");
  EXPECT_EQ(arguments["fsdp_config"]["state_dict_type"], "SHARDED_STATE_DICT");
  EXPECT_THAT(files_of(Target::accelerate, {.dp = 16, .zero = 2}).at("accelerate.yaml"),
              HasSubstr("fsdp_reshard_after_forward: false"));
  const auto staged = files_of(Target::accelerate, {.dp = 16, .zero = 1});
  EXPECT_THAT(staged.at("accelerate.yaml"), HasSubstr("distributed_type: DEEPSPEED"));
  EXPECT_TRUE(staged.contains("ds_config.json"));
}

TEST(Emit, TheModelHasThePlannedShape) {
  const Json llama = Json::parse(model_config(*family("llama-3-8b")));
  EXPECT_EQ(llama["model_type"], "llama");
  EXPECT_EQ(llama["num_key_value_heads"], 8);
  EXPECT_EQ(Json::parse(model_config(*family("gpt2")))["n_layer"], 12);
  EXPECT_EQ(Json::parse(model_config(*family("mixtral-8x7b")))["num_local_experts"], 8);
  EXPECT_EQ(Json::parse(model_config(*family("deepseek-v3")))["kv_lora_rank"], 512);
}

TEST(Emit, RefusesAParallelismThatTheTargetCannotRun) {
  Question question = asked();
  const TimingFacts facts = timing_facts(question.training, question.cluster);
  const auto refused = [&](Target target, const Parallelism& parallelism) {
    const auto files = emit({target, "x", ""}, question, plan_of(question, facts, parallelism));
    return files ? std::string() : files.error().message;
  };
  EXPECT_THAT(refused(Target::torchrun, {.dp = 8, .tp = 2}), HasSubstr("tp=pp=cp=ep=1"));
  EXPECT_THAT(refused(Target::fsdp, {.dp = 16}), HasSubstr("zero=2 or zero=3"));
  EXPECT_THAT(refused(Target::megatron, {.dp = 8, .pp = 2, .zero = 3}), HasSubstr("only with pp=1"));
  EXPECT_THAT(refused(Target::torchtitan, {.dp = 16, .zero = 1}), HasSubstr("zero=3"));
  EXPECT_THAT(refused(Target::deepspeed, {.dp = 8, .pp = 2}), HasSubstr("tp=pp=cp=ep=1"));
  for (const Target target : {Target::torchrun, Target::fsdp, Target::deepspeed, Target::accelerate})
    EXPECT_THAT(refused(target, {.dp = 16, .zero = target == Target::torchrun ? 0 : 3, .recompute = Recompute::selective}),
                HasSubstr("recompute=full"));
  question.training.model = *family("gemma-2-9b");
  EXPECT_THAT(refused(Target::torchtitan, {.dp = 16, .zero = 3}), HasSubstr("has no gemma-2-9b; it has llama-3-8b, "));
  EXPECT_THAT(refused(Target::megatron, {.dp = 16}), HasSubstr("gated GELU"));
  question.training.model = *family("llama-3.1-405b");
  EXPECT_THAT(refused(Target::torchtitan, {.dp = 16, .zero = 3}), HasSubstr("use --precision fp8"));
  question.training.model = *family("llama-3-8b");
  question.training.method = Method::lora;
  EXPECT_THAT(refused(Target::megatron, {.dp = 16}), HasSubstr("cannot train adapters"));
}

// megatron/training/arguments.py and transformer_config.py: what they check of the division of layers.
TEST(Emit, MegatronDividesLayersThatDoNotDivideEvenly) {
  Question question = asked();
  question.training.batch = 256;
  const auto flags = [&](const char* model, const Parallelism& parallelism) {
    question.training.model = *family(model);
    const Plan plan = plan_of(question, timing_facts(question.training, question.cluster), parallelism);
    return join(megatron_flags(question, plan), " ");
  };
  const std::string with_ends = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";
  EXPECT_THAT(flags("llama-3.1-405b", {.tp = 8, .pp = 8}), HasSubstr(with_ends));
  EXPECT_THAT(flags("llama-3.1-405b", {.tp = 8, .pp = 8, .virtual_stages = 4}),
              HasSubstr(with_ends + " --num-layers-per-virtual-pipeline-stage 4"));
  EXPECT_THAT(flags("llama-3.1-405b", {.tp = 8, .pp = 16, .virtual_stages = 4}),
              HasSubstr("--num-layers-per-virtual-pipeline-stage 2"));
  EXPECT_THAT(flags("llama-3-70b", {.pp = 6}),
              HasSubstr("--decoder-first-pipeline-num-layers 12 --decoder-last-pipeline-num-layers 12"));
  EXPECT_THAT(flags("qwen3-235b-a22b", {.pp = 4, .virtual_stages = 2}), HasSubstr("--num-layers-per-virtual-pipeline-stage 12"));
  EXPECT_THAT(flags("llama-3-8b", {.pp = 4}), Not(HasSubstr("pipeline-num-layers")));
  question.training.model = *family("llama-3-70b");
  EXPECT_THAT(megatron_refuses(question.training, {.pp = 6, .virtual_stages = 2}), HasSubstr("cannot divide 80 layers"));
  EXPECT_THAT(megatron_refuses(question.training, {.pp = 5, .virtual_stages = 3}), HasSubstr("cannot divide 80 layers"));
  EXPECT_THAT(megatron_refuses(question.training, {.dp = 64, .pp = 8, .virtual_stages = 2}), HasSubstr("complete groups of pp=8"));
}

// The names of Megatron-LM's own parser (megatron/training/arguments.py), as recorded.
TEST(Emit, MegatronsFlagsAreThoseOfItsParser) {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/plan/megatron_arguments.txt");
  std::set<std::string> known;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("--")) known.insert(line);
  ASSERT_GT(known.size(), 100U);
  Question question = asked();
  const auto check = [&](const Parallelism& parallelism) {
    const Plan plan = plan_of(question, timing_facts(question.training, question.cluster), parallelism);
    for (const std::string& flag : megatron_flags(question, plan))
      EXPECT_TRUE(known.contains(flag.substr(0, flag.find(' ')))) << flag;
  };
  check({.dp = 2,
         .tp = 4,
         .pp = 2,
         .zero = 1,
         .virtual_stages = 2,
         .recompute = Recompute::full,
         .sequence_parallel = true});
  check({.dp = 4, .cp = 4, .recompute = Recompute::selective});
  check({.dp = 16, .zero = 3});
  question.training.model = *family("deepseek-v3");
  check({.dp = 16, .ep = 8, .zero = 1});
  question.training.model = *family("qwen3-30b-a3b");
  question.training.precision = Precision::fp8;
  check({.dp = 16, .ep = 8, .zero = 1});
  question.training.model = *family("gpt2-xl");
  question.training.precision = Precision::fp16;
  check({.dp = 16});
}

}  // namespace
}  // namespace gridctl::plan::emit_test
