// SPDX-License-Identifier: Apache-2.0
#include "plan/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "questions.hpp"

namespace gridctl::plan::search_test {
namespace {

using testing::question;
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

using ::testing::HasSubstr;

// Layouts of one number of GPUs for a dense model and short texts, written down anew.
std::size_t choices_for(const Question& asked, int gpus) {
  std::size_t count = 0;
  const bool scores = asked.training.framework == Framework::megatron;
  for (int tp = 1; tp <= gpus && tp <= asked.cluster.fast_domain; ++tp)
    for (int pp = 1; pp * tp <= gpus && pp <= asked.training.model.layers; ++pp) {
      if (gpus % tp != 0 || gpus / tp % pp != 0) continue;
      const int dp = gpus / tp / pp;
      const std::int64_t share = std::max<std::int64_t>(asked.training.batch / dp, 1);
      for (int zero = 0; zero <= 3; ++zero)
        for (const int stages : {1, 2, 4})
          for (std::int64_t batch = 1; batch <= share; batch *= 2)
            for (const Offload offload : {Offload::none, Offload::optimizer, Offload::all})
              for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
                if (stages > 1 && pp == 1) continue;                                 // one stage is not interleaved
                if (zero > 0 && dp == 1 && offload != Offload::all) continue;        // nothing is sharded over one
                if (recompute == Recompute::selective && scores) continue;           // flash attention keeps no scores
                if (offload == Offload::all && zero != 3) continue;                  // only what is sharded
                ++count;
              }
    }
  return count;
}

TEST(SearchSpace, IsEveryChoiceOfEveryNumberOfGpusOnce) {
  const Question asked = question(4, 3);
  std::size_t expected = 0;
  for (const int gpus : {1, 2, 4, 8, 12}) expected += choices_for(asked, gpus);
  EXPECT_EQ(search(asked).looked_at, expected);
}

TEST(SearchSpace, OfAllNodesAloneIsThatOfTheirGpus) {
  Question asked = question(4, 3);
  asked.fewer_nodes = false;
  EXPECT_EQ(search(asked).looked_at, choices_for(asked, 12));
  asked.training.framework = Framework::megatron;
  EXPECT_EQ(search(asked).looked_at, choices_for(asked, 12));
}

TEST(SearchSpace, HasOddNumbersOfGpusWhereADegreeIsOdd) {
  Question asked = question(4, 3);
  asked.wanted.dp = 3;
  for (const auto& [gpus, plan] : search(asked).by_gpus) {
    EXPECT_EQ(gpus % 3, 0);
    EXPECT_EQ(plan.parallelism.dp, 3);
  }
  EXPECT_TRUE(search(asked).by_gpus.empty()) << "16 sequences cannot be divided by three";
  asked.training.batch = 12;
  EXPECT_TRUE(search(asked).by_gpus.contains(3));
  EXPECT_TRUE(search(asked).by_gpus.contains(12));
}

TEST(SearchSpace, KeepsToWhatIsNotRefused) {
  Question asked = question(4, 2);
  asked.refuses = [](const Training&, const Parallelism& parallelism) {
    return parallelism.tp == 2 && parallelism.zero == 3 ? "" : "it is another one";
  };
  const Answer answer = search(asked);
  EXPECT_GT(answer.fitting, 0u);
  for (const Plan& plan : answer.best) {
    EXPECT_EQ(plan.parallelism.tp, 2);
    EXPECT_EQ(plan.parallelism.zero, 3);
  }
}

TEST(SearchSpace, DividesLongTexts) {
  Question asked = question(8, 1);
  const auto divides = [&](std::int64_t sequence) {
    asked.training.sequence = sequence;
    asked.wanted.cp = 2;
    const bool wanted = !search(asked).best.empty();
    asked.wanted.cp.reset();
    std::size_t divided = 0;
    asked.refuses = [&](const Training&, const Parallelism& parallelism) {
      divided += parallelism.cp > 1 ? 1 : 0;
      return "";
    };
    (void)search(asked);
    asked.refuses = {};
    EXPECT_TRUE(wanted);
    return divided > 0;
  };
  EXPECT_FALSE(divides(4094));
  EXPECT_TRUE(divides(4096));
}

TEST(SearchSpace, OfAboutEqualOnesTheSimplestIsChosen) {
  Question asked = question(8, 1);
  asked.training.model = *family("llama-3-8b");
  asked.training.sequence = 8192;
  asked.training.batch = 512;
  const Answer answer = search(asked);
  ASSERT_GT(answer.best.size(), 2u);
  const auto effort = [](const Parallelism& one) { return one.pp * 8 + one.tp * 4 + one.cp * 4; };
  const double chosen = answer.best.front().time.seconds;
  for (const Plan& plan : answer.best)
    if (plan.time.seconds <= chosen && plan.parallelism.offload == Offload::none) {
      EXPECT_GE(effort(plan.parallelism), effort(answer.best.front().parallelism)) << text_of(plan.parallelism);
    }
  const auto least = std::ranges::min_element(answer.best, {}, [](const Plan& one) { return one.time.seconds; });
  EXPECT_LE(chosen, least->time.seconds * 1.03);
}

TEST(SearchSpace, DividesModelsOnlyWhereTheFrameworkCan) {
  for (const Framework framework : {Framework::ddp, Framework::deepspeed, Framework::fsdp, Framework::transformers}) {
    Question asked = question(4, 2);
    asked.training.framework = framework;
    for (const Plan& plan : search(asked).best) {
      EXPECT_EQ(plan.parallelism.dp, plan.parallelism.gpus()) << text_of(framework);
      EXPECT_NE(plan.parallelism.recompute, Recompute::selective) << "transformers recompute whole layers";
    }
  }
}

// One says what is wrong, one whether anything is, one what kind: of a grid of parallelisms, sound and unsound ones.
void expect_agreement(const Training& training) {
  std::size_t sound = 0, all = 0;
  for (const int dp : {1, 2, 3, 8})
    for (const int tp : {1, 2, 3, 8})
      for (const int pp : {1, 2, 5, 16, 17})
        for (const int cp : {1, 2, 3})
          for (const int ep : {1, 2, 3, 4})
            for (const int zero : {0, 1, 2, 3})
              for (const int stages : {1, 2, 4})
                for (const int batch : {1, 2, 4, 16}) {
                  const Parallelism parallelism{.dp = dp, .tp = tp, .pp = pp, .cp = cp, .ep = ep, .zero = zero, .virtual_stages = stages, .micro_batch = batch};
                  const bool can = possible(training, parallelism);
                  ASSERT_EQ(can, faults_of(training, parallelism).empty())
                      << text_of(parallelism) << ": " << join(faults_of(training, parallelism), "; ");
                  ASSERT_EQ(can, !reason_against(training, parallelism)) << text_of(parallelism);
                  ++all;
                  sound += can ? 1 : 0;
                }
  EXPECT_GT(sound, 20u);
  EXPECT_LT(sound, all / 2);
}

TEST(WhatCannotRun, IsSaidAlikeByAllWhoSayIt) {
  Training training = question(8, 1).training;
  expect_agreement(training);
  training.framework = Framework::megatron;
  expect_agreement(training);
  training.model.experts = 8;
  training.model.experts_per_token = 2;
  training.batch = 48;
  expect_agreement(training);
}

TEST(WhatCannotRun, HasTheGravestReasonFirst) {
  const Training training = question(8, 1).training;  // 32 heads, 16 layers, 16 sequences of 4096
  const auto reason = [&](const Parallelism& parallelism) { return reason_against(training, parallelism); };
  EXPECT_EQ(reason({.dp = 16}), std::nullopt);
  EXPECT_EQ(reason({.tp = 3}), Reason::heads);
  EXPECT_EQ(reason({.pp = 17}), Reason::layers);
  EXPECT_EQ(reason({.pp = 8, .virtual_stages = 4}), Reason::layers);
  EXPECT_EQ(reason({.cp = 3}), Reason::sequence);
  EXPECT_EQ(reason({.dp = 32}), Reason::batch);
  EXPECT_EQ(reason({.dp = 3}), Reason::batch);
  EXPECT_EQ(reason({.dp = 8, .micro_batch = 4}), Reason::batch);
  EXPECT_EQ(reason({.pp = 2, .zero = 2}), Reason::sharding);
  EXPECT_EQ(reason({.pp = 2, .zero = 3}), std::nullopt) << "FSDP2 can";
  EXPECT_EQ(reason({.virtual_stages = 2}), Reason::sharding);
  EXPECT_EQ(reason({.dp = 2, .ep = 2}), Reason::experts);
}

}  // namespace
}  // namespace gridctl::plan::search_test
