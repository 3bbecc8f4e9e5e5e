// SPDX-License-Identifier: Apache-2.0
#include "plan/outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/estimate.hpp"

namespace gridctl::plan::outcome_test {
namespace {

constexpr const char* k_row =
    R"({"model":"llama-3-8b","gpu":"H100 SXM5 80GB","dp":8,"sharding":"zero3","framework":"fsdp2","seq_len":8192,)"
    R"("global_batch":64,"micro_batch":1,"act_recompute":"full"})";

TEST(MeasuredOf, KnowsTheNamesThatJobsUse) {
  const Measured all = measured_of({{"step_time_s", 2}, {"step_s", 1}, {"tokens_per_s", 5e4}, {"peak_mem_gb", 40}});
  EXPECT_EQ(all.step_s, 2);
  EXPECT_EQ(all.tokens_per_s, 5e4);
  EXPECT_EQ(all.peak_bytes, 40e9);
  EXPECT_FALSE(measured_of({{"loss", 3}, {"step_s", 1}, {"step_time_s", -1}}).any());
}

TEST(Learn, MovesPredictionsOfThatClassToWhatWasMeasured) {
  const Row row = *read_row(k_row);
  const TimingFacts facts = timing_facts(row.training, row.cluster);
  const Terms terms = terms_of(row.training, facts, row.cluster, row.parallelism);
  const double shipped = dot(terms, facts.coefficients);
  const double peak = memory_of(row.training, row.parallelism).peak();
  const FinishedRun run{k_row, {.step_s = shipped * 1.4, .tokens_per_s = {}, .peak_bytes = peak * 1.2}};
  const Learned learned = learn(std::vector{run}, row.training, row.cluster);
  ASSERT_TRUE(learned.coefficients && learned.constants);
  EXPECT_NEAR(dot(terms, *learned.coefficients), shipped * 1.4, shipped * 0.02);
  Memory memory = memory_of(row.training, row.parallelism);
  memory.constants = *learned.constants;
  EXPECT_NEAR(memory.peak(), peak * 1.2, peak * 0.05);
}

TEST(Learn, ThroughputTellsTheStepToo) {
  const Row row = *read_row(k_row);
  const FinishedRun step{k_row, {.step_s = 10, .tokens_per_s = {}, .peak_bytes = {}}};
  const FinishedRun rate{k_row, {.step_s = {}, .tokens_per_s = 64 * 8192 / 10.0, .peak_bytes = {}}};
  EXPECT_EQ(learn(std::vector{step}, row.training, row.cluster).coefficients,
            learn(std::vector{rate}, row.training, row.cluster).coefficients);
}

TEST(Learn, TakesNothingFromOtherClassesNorFromNonsense) {
  Row row = *read_row(k_row);
  const FinishedRun run{k_row, {.step_s = 1, .tokens_per_s = {}, .peak_bytes = {}}}, broken{"{", {.step_s = 1, .tokens_per_s = {}, .peak_bytes = {}}};
  EXPECT_EQ(learn(std::vector{broken}, row.training, row.cluster).timed, 0U);
  row.cluster.device.gpu_class = GpuClass::ampere;
  EXPECT_FALSE(learn(std::vector{run}, row.training, row.cluster).coefficients);
  row.cluster.device.gpu_class = GpuClass::hopper;
  row.training.framework = Framework::megatron;
  EXPECT_FALSE(learn(std::vector{run}, row.training, row.cluster).coefficients);
}

}  // namespace
}  // namespace gridctl::plan::outcome_test
