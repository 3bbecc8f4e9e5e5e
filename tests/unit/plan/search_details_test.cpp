// SPDX-License-Identifier: Apache-2.0
// That a search looks at every parallelism that makes sense, and that its three ways to say what cannot run agree.
#include <gmock/gmock.h>

#include "base/text.hpp"
#include "plan/search.hpp"
#include "plan/serve.hpp"

namespace gridctl::plan::search_details_test {
namespace {

using ::testing::HasSubstr;

Question question(int each, int nodes) {
  Question out;
  out.training.model = *family("llama-3.2-1b");
  out.training.sequence = 2048;
  out.training.batch = 16;
  out.training.framework = Framework::fsdp2;
  const sched::GpuModel* const row = *gpu_named("H100 SXM5 80GB");
  out.cluster = cluster_of(device_of(*row), row, each);
  out.nodes = nodes;
  return out;
}

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

TEST(WantedParts, AreReadWithTheirLimits) {
  const auto wanted = read_wanted("dp=2, tp=3,pp=4,cp=5,ep=6,zero=0,vpp=7,mb=8,recompute=selective,offload=all");
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->dp, 2);
  EXPECT_EQ(wanted->tp, 3);
  EXPECT_EQ(wanted->pp, 4);
  EXPECT_EQ(wanted->cp, 5);
  EXPECT_EQ(wanted->ep, 6);
  EXPECT_EQ(wanted->zero, 0);
  EXPECT_EQ(wanted->virtual_stages, 7);
  EXPECT_EQ(wanted->micro_batch, 8);
  EXPECT_EQ(wanted->recompute, Recompute::selective);
  EXPECT_EQ(wanted->offload, Offload::all);
  EXPECT_EQ(read_wanted("zero=3")->zero, 3);
  EXPECT_EQ(read_wanted("dp=1000000")->dp, 1'000'000);
  for (const char* wrong : {"zero=4", "zero=-1", "dp=0", "dp=1000001", "dp=2x", "dp=", "=2", "what=1", "recompute=", "offload=x"})
    EXPECT_FALSE(read_wanted(wrong)) << wrong;
  EXPECT_THAT(read_wanted("qqqqqqq=1").error().message, HasSubstr("dp, tp, pp"));
}

TEST(WantedParts, AreJudgedByThemselves) {
  Question asked = question(8, 2);
  const auto says = [&](const std::string& parts) {
    asked.wanted = *read_wanted(parts);
    return join(faults_of_wanted(asked), "; ");
  };
  EXPECT_EQ(says("dp=16"), "");
  EXPECT_EQ(says("dp=8,pp=2"), "");
  EXPECT_THAT(says("tp=8,pp=4"), HasSubstr("= 32 is more than the 16 GPUs"));
  EXPECT_EQ(says("tp=8"), "");
  EXPECT_EQ(says("zero=3,offload=all"), "");
  EXPECT_EQ(says("offload=all"), "") << "the search gives it zero=3";
  EXPECT_EQ(says("zero=2"), "") << "nobody said that there is a pipeline";
  EXPECT_THAT(says("zero=2,pp=2"), HasSubstr("zero=2"));
  asked.training.model.experts = 8;
  asked.training.model.experts_per_token = 2;
  EXPECT_EQ(says("ep=8"), "") << "there will be as many replicas";
  EXPECT_THAT(says("ep=8,dp=2"), HasSubstr("dp times cp"));
}

// --- Serving ---------------------------------------------------------------------------------------------------------

TEST(Machines, OfDesksAreNotThoseOfDataCentres) {
  const auto cluster = [](const char* name, int each) {
    const sched::GpuModel* const row = *gpu_named(name);
    return cluster_of(device_of(*row), row, each);
  };
  for (const char* name : {"RTX 3090", "RTX A6000", "A10", "RTX 5090", "RTX 4090"})
    EXPECT_EQ(cluster(name, 1).device.gpu_class, GpuClass::other) << name;
  EXPECT_EQ(cluster("A100 PCIe 80GB", 1).device.gpu_class, GpuClass::ampere);
  EXPECT_DOUBLE_EQ(cluster("A100 PCIe 80GB", 2).node_link, 300e9) << "a bridge joins two";
  EXPECT_DOUBLE_EQ(cluster("A100 PCIe 80GB", 8).node_link, 25e9);
  EXPECT_DOUBLE_EQ(cluster("RTX 3090", 2).node_link, 25e9) << "mostly there is none";
  EXPECT_DOUBLE_EQ(cluster("A100 SXM4 80GB", 8).node_link, 300e9);
}

TEST(Machines, LinksAreSaidInBits) {
  EXPECT_DOUBLE_EQ(bytes_per_second_of("1Gbps").value(), 125e6);
  EXPECT_DOUBLE_EQ(bytes_per_second_of("400 Gbit/s").value(), 50e9);
  EXPECT_DOUBLE_EQ(bytes_per_second_of("2.5gb/s").value(), 312.5e6);
  EXPECT_DOUBLE_EQ(bytes_per_second_of("100mbit/s").value(), 12.5e6);
  for (const char* wrong : {"", "1", "fast", "-1Gbps", "0Gbps", "1GB", "Gbps", "nan Gbps"})
    EXPECT_FALSE(bytes_per_second_of(wrong)) << wrong;
}

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
}  // namespace gridctl::plan::search_details_test
