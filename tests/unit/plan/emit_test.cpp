// SPDX-License-Identifier: Apache-2.0
#include "plan/emit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <map>
#include <set>

#include "base/text.hpp"

namespace gridctl::plan {
namespace {
using Json = nlohmann::json;
using ::testing::HasSubstr;

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
  EXPECT_THAT(files.at("job.yaml"), HasSubstr("launcher: torchrun"));
  EXPECT_THAT(files.at("launch.sh"), HasSubstr("--nproc-per-node 8 --nnodes 2"));
  EXPECT_THAT(files_of(Target::torchrun, {.dp = 8}).at("launch.sh"), HasSubstr("--standalone"));
}

TEST(Emit, DeepSpeedsBatchIsMicroBatchTimesStepsTimesGpus) {
  const Json config =
      Json::parse(files_of(Target::deepspeed, {.dp = 16, .zero = 3, .micro_batch = 2}).at("ds_config.json"));
  EXPECT_EQ(config["train_batch_size"], 128);
  EXPECT_EQ(config["train_micro_batch_size_per_gpu"].get<int>() * config["gradient_accumulation_steps"].get<int>() * 16,
            128);
  EXPECT_EQ(config["zero_optimization"]["stage"], 3);
  EXPECT_EQ(config["bf16"]["enabled"], true);
}

TEST(Emit, FsdpAndAccelerateSayTheSameStrategy) {
  const Json arguments = Json::parse(files_of(Target::fsdp, {.dp = 16, .zero = 2}).at("training_args.json"));
  EXPECT_EQ(arguments["fsdp"], "shard_grad_op auto_wrap");
  EXPECT_THAT(files_of(Target::accelerate, {.dp = 16, .zero = 2}).at("accelerate.yaml"),
              HasSubstr("fsdp_sharding_strategy: SHARD_GRAD_OP"));
  const auto staged = files_of(Target::accelerate, {.dp = 16, .zero = 1});
  EXPECT_THAT(staged.at("accelerate.yaml"), HasSubstr("distributed_type: DEEPSPEED"));
  EXPECT_TRUE(staged.contains("ds_config.json"));
}

TEST(Emit, RefusesALayoutThatTheTargetCannotRun) {
  const Question question = asked();
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
}  // namespace gridctl::plan
