// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/job_file.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::workload_test {
namespace {
using namespace std::chrono_literals;
using job::Backend;
using job::JobClass;
using ::testing::HasSubstr;

Result<ParsedJob> read(const std::string& text) {
  return parse_job_file("run: x\n" + text, "job.yaml", ada_s_laptop());
}
job::Workload workload(const std::string& text) {
  const auto job = read(text);
  EXPECT_TRUE(job) << job.error().message;
  return job ? job->spec.workload : job::Workload{};
}
std::string refusal(const std::string& text) {
  const auto job = read(text);
  return job ? "accepted" : job.error().message;
}

TEST(WorkloadModel, GivesParametersAndMemoryThatWereNotSaid) {
  const job::Workload full = workload("workload: {model: llama-3-8b}\n");
  EXPECT_NEAR(*full.params, 8.03e9, 0.01e9);
  EXPECT_GT(*full.model_memory_bytes, 128'000'000'000U);  // 16 bytes of states for each parameter
  const job::Workload adapter = workload("workload: {model: Llama-3-8B, method: qlora, seq: 2048}\n");
  EXPECT_LT(*adapter.params, 1e8);
  EXPECT_LT(*adapter.model_memory_bytes, 24'000'000'000U);
  EXPECT_DOUBLE_EQ(*workload("workload: {model: llama-3-8b, params: 5B}\n").params, 5e9);
}

TEST(WorkloadModel, KeepsWhatThePlannerIsToKnow) {
  const job::Trained said =
      workload("workload: {model: LLaMA-3-8B, method: lora, seq: 2048, batch: 64, framework: ddp, layout: 'dp=8,zero=1'}\n")
          .trained;
  EXPECT_EQ(said, (job::Trained{"llama-3-8b", "lora", "ddp", "dp=8,zero=1", 2048, 64, false}));
  EXPECT_TRUE(workload("workload: {model: llama-3-8b, model_memory: 80GB}\n").trained.memory_said);
  EXPECT_THAT(refusal("workload: {model: llama-3-8b, layout: 'tpp=2'}\n"), HasSubstr("did you mean 'tp'?"));
  EXPECT_THAT(refusal("workload: {model: llama-3-8b, framework: jax}\n"), HasSubstr("megatron"));
}

TEST(WorkloadModel, ThatNobodyKnowsIsNamed) {
  EXPECT_THAT(refusal("workload: {model: llama-3-9b}\n"), HasSubstr("did you mean 'llama-3-8b'?"));
  EXPECT_THAT(refusal("workload: {model: llama-3-8b, method: magic}\n"), HasSubstr("full, lora or qlora"));
}

TEST(WorkloadKeys, AreAllRead) {
  const job::Workload read = workload(R"(class: federated
backend: gloo
tasks: 5000
workload: {params: 7B, exchange: 80GB, step: 1.5s, sync_every: 500, work: 40h, model_memory: 80GiB}
)");
  job::Workload want;
  want.job_class = JobClass::federated;
  want.backend = Backend::gloo;
  want.tasks = 5000;
  want.params = 7e9;
  want.exchange_bytes = 80'000'000'000;
  want.step = 1500ms;
  want.sync_every = 500;
  want.work = 40h;
  want.model_memory_bytes = 80ull << 30;
  EXPECT_EQ(read, want);
}

TEST(WorkloadKeys, AreAllOptional) { EXPECT_EQ(workload("workload: {}\n"), job::Workload{}); }

TEST(WorkloadKeys, TakeParametersWithTheirLetters) {
  EXPECT_EQ(workload("workload: {params: 350M}").params, 350e6);
  EXPECT_EQ(workload("workload: {params: 1.5t}").params, 1.5e12);
  EXPECT_EQ(workload("workload: {params: 12k}").params, 12e3);
  EXPECT_EQ(workload("workload: {params: 6700000000}").params, 6.7e9);
}

TEST(WorkloadKeys, TakeStepsInPartsOfASecond) {
  EXPECT_EQ(workload("workload: {step: 320ms}").step, 320ms);
  EXPECT_EQ(workload("workload: {step: 0.25}").step, 250ms);
  EXPECT_EQ(workload("workload: {step: 2m}").step, 2min);
}

TEST(WorkloadKeys, SayWhatWasExpected) {
  EXPECT_EQ(
      refusal("class: tigth"),
      "job.yaml:2:8: key 'class': expected auto, tight, medium, loose, service or federated, got 'tigth'; did you "
      "mean 'tight'?");
  EXPECT_EQ(refusal("class: [tight]"),
            "job.yaml:2:8: key 'class': expected auto, tight, medium, loose, service or federated, got a list");
  EXPECT_EQ(
      refusal("backend: ncll"),
      "job.yaml:2:10: key 'backend': expected auto, nccl, rccl, oneccl, gloo, mpi or none, got 'ncll'; did you mean "
      "'nccl'?");
  EXPECT_EQ(refusal("tasks: 0"), "job.yaml:2:8: key 'tasks': expected a whole number from 1 to 10000000, got '0'");
  EXPECT_EQ(refusal("tasks: 10000001"),
            "job.yaml:2:8: key 'tasks': expected a whole number from 1 to 10000000, got '10000001'");
  EXPECT_EQ(refusal("workload: 7B"), "job.yaml:2:11: key 'workload': expected a mapping of keys to values, got '7B'");
  EXPECT_EQ(refusal("workload: {parameters: 7B}"),
            "job.yaml:2:12: key 'workload.parameters': not a known key; did you mean 'params'?");
  EXPECT_EQ(refusal("workload: {params: 7 billion}"),
            "job.yaml:2:20: key 'workload.params': expected a number of parameters such as 350M, 7B or 1.5T, got '7 "
            "billion'");
  EXPECT_EQ(
      refusal("workload: {params: 0.1}"),
      "job.yaml:2:20: key 'workload.params': expected a number of parameters such as 350M, 7B or 1.5T, got '0.1'");
  EXPECT_EQ(refusal("workload: {exchange: much}"),
            "job.yaml:2:22: key 'workload.exchange': expected a size such as 500MB or 80GB, got 'much'");
  EXPECT_EQ(refusal("workload: {step: 0.0001s}"),
            "job.yaml:2:18: key 'workload.step': expected a duration from 1ms to 1d such as 320ms, 1.5s or 2m, got "
            "'0.0001s'");
  EXPECT_EQ(refusal("workload: {sync_every: 0}"),
            "job.yaml:2:24: key 'workload.sync_every': expected a whole number from 1 to 1000000, got '0'");
  EXPECT_EQ(refusal("workload: {model_memory: 0GB}"),
            "job.yaml:2:26: key 'workload.model_memory': expected a size such as 500MB or 80GB, got '0GB'");
}

TEST(Workload, ExchangesTwoBytesAParameterUnlessSaidOtherwise) {
  EXPECT_EQ(job::exchange_bytes(workload("")), std::nullopt);
  EXPECT_EQ(job::exchange_bytes(workload("workload: {params: 7B}")), 14e9);
  EXPECT_EQ(job::exchange_bytes(workload("workload: {params: 7B, exchange: 70MB}")), 70e6);
}
}  // namespace
}  // namespace gridctl::config::workload_test
