// SPDX-License-Identifier: Apache-2.0
#include "plan/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"

namespace gridctl::plan::search_test {
namespace {
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Question question(const char* model, const char* gpu, int each, int nodes) {
  Question out;
  out.training.model = *family(model);
  out.training.sequence = 4096;
  out.training.batch = 256;
  out.training.framework = Framework::megatron;
  const sched::GpuModel* const row = *gpu_named(gpu);
  out.cluster = cluster_of(device_of(*row), row, each);
  out.nodes = nodes;
  out.tokens = 1e9;
  out.usd_per_gpu_hour = 2;
  return out;
}

TEST(Search, OffersOnlyWhatFitsAndCanRun) {
  const Question asked = question("llama-3-70b", "H100 SXM5 80GB", 8, 4);
  const Answer answer = search(asked);
  ASSERT_THAT(answer.best, Not(IsEmpty()));
  for (const Plan& plan : answer.best) {
    EXPECT_THAT(faults_of(asked.training, plan.parallelism), IsEmpty()) << text_of(plan.parallelism);
    EXPECT_LE(plan.memory.peak(), asked.cluster.device.memory * (1 - k_memory_margin));
    EXPECT_LE(plan.parallelism.gpus(), 32);
    EXPECT_LE(plan.parallelism.tp, 8);
  }
  std::size_t rejected = 0;
  for (const std::size_t count : answer.rejected.count) rejected += count;
  EXPECT_EQ(rejected + answer.fitting, answer.looked_at);
}

TEST(Search, KnowsTheWordsForWhatItRanksBy) {
  EXPECT_EQ(rank_of("time"), RankBy::time);
  EXPECT_EQ(rank_of("cost"), RankBy::cost);
  EXPECT_EQ(rank_of("expected"), RankBy::expected);
  EXPECT_EQ(rank_of("speed"), std::nullopt);
}

TEST(Search, RanksByWhatWasAskedFor) {
  Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 8);
  const double quickest = search(asked).best.front().expected_hours();
  asked.rank = RankBy::cost;
  const Answer cheap = search(asked);
  EXPECT_GE(cheap.best.front().expected_hours(), quickest);
  double least = 1e300;
  for (const Plan& plan : cheap.frontier) least = std::min(least, plan.usd);
  EXPECT_NEAR(cheap.best.front().usd, least, least * 0.02);
}

TEST(Search, TheFrontierHasNoPlanThatAnotherBeatsInBoth) {
  const Answer answer = search(question("llama-3-8b", "A100 SXM4 80GB", 8, 16));
  ASSERT_GT(answer.frontier.size(), 1U);
  for (std::size_t i = 1; i < answer.frontier.size(); ++i) {
    EXPECT_GT(answer.frontier[i].expected_hours(), answer.frontier[i - 1].expected_hours());
    EXPECT_LT(answer.frontier[i].usd, answer.frontier[i - 1].usd);
  }
}

TEST(Search, PartsThatAreGivenAreKept) {
  Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 2);
  asked.wanted = *read_wanted("tp=4,zero=1,recompute=full,mb=2");
  const Answer answer = search(asked);
  ASSERT_THAT(answer.best, Not(IsEmpty()));
  for (const Plan& plan : answer.best) {
    EXPECT_EQ(plan.parallelism.tp, 4);
    EXPECT_EQ(plan.parallelism.zero, 1);
    EXPECT_EQ(plan.parallelism.micro_batch, 2);
    EXPECT_EQ(plan.parallelism.recompute, Recompute::full);
  }
}

TEST(Search, BudgetAndDeadlineExclude) {
  Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 4);
  asked.budget_usd = 0.01;
  const Answer poor = search(asked);
  EXPECT_THAT(poor.best, IsEmpty());
  EXPECT_GT(poor.rejected.count[static_cast<std::size_t>(Reason::budget)], 0U);
  asked.budget_usd.reset();
  asked.deadline_s = 1;
  EXPECT_GT(search(asked).rejected.count[static_cast<std::size_t>(Reason::deadline)], 0U);
}

TEST(Search, FailuresMakeALargerJobLoseMore) {
  Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 1);
  asked.risk.failures_per_node_hour = 1.0 / 24;
  const TimingFacts facts = timing_facts(asked.training, asked.cluster);
  const Plan small = plan_of(asked, facts, {.dp = 8, .zero = 3}), large = plan_of(asked, facts, {.dp = 64, .zero = 3});
  EXPECT_LT(large.efficiency, small.efficiency);
  EXPECT_LT(small.efficiency, 1);
}

TEST(Search, RecomputesAndOffloadsOnlyWhatDoesNotFitWithout) {
  const Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 4);
  const Answer answer = search(asked);
  EXPECT_GT(answer.rejected.count[static_cast<std::size_t>(Reason::needless)], 0U);
  for (const Plan& plan : answer.best) {
    EXPECT_EQ(plan.parallelism.offload, Offload::none) << text_of(plan.parallelism);
    EXPECT_EQ(plan.parallelism.recompute, Recompute::none) << text_of(plan.parallelism);
  }
}

TEST(Search, StreamingParametersFromTheNodeTakesTime) {
  Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 1);
  const TimingFacts facts = timing_facts(asked.training, asked.cluster);
  const Parallelism kept{.dp = 1, .tp = 8, .zero = 3}, streamed{.dp = 1, .tp = 8, .zero = 3, .offload = Offload::all};
  const Plan a = plan_of(asked, facts, kept), b = plan_of(asked, facts, streamed);
  // 256 micro-batches fetch a billion parameters twice and send their gradients, over 12 GB/s.
  EXPECT_GT(b.time.seconds - a.time.seconds, 256 * 6 * 1e9 / 12e9 * 0.1);
  EXPECT_GT(b.memory.offloaded, 16e9);
}

TEST(Search, WhatIsOffloadedMustFitTheNode) {
  Question asked = question("llama-3.1-405b", "H100 SXM5 80GB", 8, 2);
  EXPECT_THAT(search(asked).best, IsEmpty());
  EXPECT_GT(search(asked).rejected.count[static_cast<std::size_t>(Reason::host_memory)], 0U);
  asked.cluster.host_memory = 16e12;
  EXPECT_THAT(search(asked).best, Not(IsEmpty()));
}

TEST(Search, OfEachNumberOfGpusThereIsOnePlan) {
  const Answer answer = search(question("llama-3-8b", "H100 SXM5 80GB", 8, 4));
  EXPECT_EQ(answer.by_gpus.rbegin()->first, 32);
  for (const auto& [gpus, plan] : answer.by_gpus) EXPECT_EQ(plan.parallelism.gpus(), gpus);
  for (std::size_t i = 2; i < answer.best.size(); ++i)  // after the choice, by what they take
    EXPECT_LE(answer.best[i - 1].expected_hours(), answer.best[i].expected_hours());
}

TEST(Search, GradientsThatAreShardedArePassedOnAfterEachMicroBatch) {
  const Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 1);
  const TimingFacts facts = timing_facts(asked.training, asked.cluster);
  const double once = plan_of(asked, facts, {.dp = 8, .zero = 1, .micro_batch = 32}).traffic.data;
  EXPECT_NEAR(plan_of(asked, facts, {.dp = 8, .zero = 2, .micro_batch = 32}).traffic.data, once, once * 1e-9);
  EXPECT_GT(plan_of(asked, facts, {.dp = 8, .zero = 2, .micro_batch = 1}).traffic.data, 15 * once);
}

TEST(Search, NamesWhatContradictsTheModelOrTheMachines) {
  Question asked = question("llama-3-8b", "H100 SXM5 80GB", 8, 1);
  const auto says = [&](const char* parts) {
    asked.wanted = *read_wanted(parts);
    return join(faults_of_wanted(asked), "; ");
  };
  EXPECT_EQ(says("dp=8,zero=3,mb=4"), "");
  EXPECT_EQ(says("pp=2"), "");
  EXPECT_THAT(says("tp=3"), HasSubstr("number of heads 32 cannot be divided by tp=3"));
  EXPECT_THAT(says("dp=16"), HasSubstr("more than the 8 GPUs"));
  EXPECT_THAT(says("tp=16"), HasSubstr("joined by a fast link"));
  EXPECT_THAT(says("pp=33"), HasSubstr("more than the 32 layers"));
  EXPECT_THAT(says("ep=2"), HasSubstr("no experts"));
  EXPECT_THAT(says("pp=2,zero=3"), HasSubstr("zero=3 with pp=2"));
  EXPECT_THAT(says("pp=1,vpp=2"), HasSubstr("virtual stages need pp > 1"));
  EXPECT_THAT(says("dp=6"), HasSubstr("batch 256 cannot be divided"));
  EXPECT_THAT(says("zero=1,offload=all"), HasSubstr("needs zero=3"));
}

TEST(Search, SaysWhyNothingFits) {
  Question asked = question("llama-3.1-405b", "RTX 4090", 1, 1);
  asked.wanted.offload = Offload::none;
  const Answer answer = search(asked);
  EXPECT_THAT(answer.best, IsEmpty());
  const std::vector<std::string> why = explain_rejections(asked, answer);
  EXPECT_THAT(join(why, "\n"), HasSubstr("more memory than the GPU has; the least of them"));
}

TEST(Search, ExplainsTheRuleOfItsChoice) {
  const Question small = question("llama-3.2-1b", "H100 SXM5 80GB", 8, 1);
  EXPECT_THAT(join(explain_choice(small, search(small).best.front()), "\n"), HasSubstr("data parallelism is enough"));
  const Question large = question("llama-3-70b", "H100 SXM5 80GB", 8, 8);
  EXPECT_THAT(join(explain_choice(large, search(large).best.front()), "\n"), HasSubstr("cannot hold the training"));
}

TEST(Wanted, NamesThePartThatIsWrong) {
  const auto says = [](const char* text) { return read_wanted(text).error().message; };
  EXPECT_THAT(says("tpp=2"), HasSubstr("did you mean 'tp'?"));
  EXPECT_THAT(says("tp=0"), HasSubstr("at least 1"));
  EXPECT_THAT(says("zero=4"), HasSubstr("0, 1, 2 or 3"));
  EXPECT_THAT(says("recompute=some"), HasSubstr("none, selective or full"));
  EXPECT_THAT(says("offload=disk"), HasSubstr("none, optimizer, all or activations"));
  EXPECT_THAT(says("dp"), HasSubstr("a number"));
}

}  // namespace
}  // namespace gridctl::plan::search_test
