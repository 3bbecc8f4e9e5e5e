// SPDX-License-Identifier: Apache-2.0
#include "sched/physics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::sched::physics_test {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Answer = LinkVerdict::Answer;

constexpr Wire k_wan{0.1e9, 0.04};
constexpr Wire k_room{12.5e9, 0.0002};  // 100 Gbit/s

TEST(SynchronousStep, IsARingAllReduceAndTheComputing) {
  const Step step = synchronous_step({80e9, 1.5, 1}, k_wan, 4);
  EXPECT_NEAR(step.exchange_s, 2 * 3 * 0.02 + 2 * 3.0 / 4 * 80e9 / (0.1e9 * 0.7), 1e-9);
  EXPECT_EQ(step.compute_s, 1.5);
  EXPECT_NEAR(step.idle_share, step.exchange_s / (step.exchange_s + 1.5), 1e-12);
}

TEST(SynchronousStep, OfOneMemberExchangesNothing) {
  EXPECT_EQ(synchronous_step({80e9, 1.5, 1}, k_wan, 1).idle_share, 0);
  EXPECT_EQ(synchronous_step({80e9, 0, 1}, k_wan, 1).idle_share, 0);
}

TEST(SynchronousStep, WithRareExchangesFollowsDiLoCo) {
  const Step one = synchronous_step({2e9, 2, 1}, k_wan, 8);
  const Step rare = synchronous_step({2e9, 2, 500}, k_wan, 8);
  EXPECT_EQ(rare.exchange_s, one.exchange_s);
  EXPECT_NEAR(1 - rare.idle_share, 500 * 2 / (500 * 2 + one.exchange_s), 1e-12);  // C10
}

TEST(NeededRate, IsTheInverse) {
  for (const int members : {2, 3, 8, 64})
    for (const double idle : {0.1, 0.2, 0.5}) {
      const Exchange exchange{14e9, 1.2, 1};
      const auto rate = needed_rate(exchange, 0.002, members, idle);
      ASSERT_TRUE(rate);
      EXPECT_NEAR(synchronous_step(exchange, {*rate, 0.002}, members).idle_share, idle, 1e-9);
    }
  EXPECT_EQ(needed_rate({1e6, 0.001, 1}, 0.1, 8, 0.2), std::nullopt) << "latency alone is too much";
  EXPECT_EQ(needed_rate({1e6, 1, 1}, 0.1, 1, 0.2), 0);
}

TEST(Judge, RefusesASynchronousJobOverTheWanWithItsNumbers) {
  const LinkVerdict no = judge_link({{80e9, 2.5, 1}, 4, 8}, k_wan);
  EXPECT_EQ(no.answer, Answer::refused);
  EXPECT_EQ(no.arithmetic,
            "80 GB of gradients a step over 0.1 GB/s take 28.6 min between 4 hosts, computing 2.5 s: GPUs idle 99.9 %");
  EXPECT_THAT(
      no.instead,
      ElementsAre("one site with at least 277 GB/s between its hosts, as NVLink between hosts (NVL72) has: GPUs idle "
                  "20 %",
                  "LoRA (adapters of about 1 % of the parameters, 800 MB a step) with workload.sync_every: 28: GPUs "
                  "idle 19.8 %",
                  "one host: nothing crosses the link"));
}

TEST(Judge, NamesEverythingThatWorks) {
  const LinkVerdict no = judge_link({{2e9, 1.5, 1}, 4, 2}, {0.5e9, 0.01});
  EXPECT_EQ(no.arithmetic,
            "2 GB of gradients a step over 0.5 GB/s take 8.6 s between 4 hosts, computing 1.5 s: GPUs idle 85.2 %");
  EXPECT_THAT(
      no.instead,
      ElementsAre("one site with at least 11.6 GB/s between its hosts, as 100 Gbit/s Ethernet or InfiniBand has: GPUs "
                  "idle 20 %",
                  "workload.sync_every: 23 (DiLoCo: exchange every 23 steps): GPUs idle 20 %",
                  "LoRA (adapters of about 1 % of the parameters, 20 MB a step): GPUs idle 7.2 %",
                  "one host with 8 GPUs: nothing crosses the link"));
}

TEST(Judge, OffersFewerNodesWhereThatHelps) {
  const LinkVerdict no = judge_link({{1e9, 2.2, 1}, 16, 1}, {1e9, 0.02});
  ASSERT_EQ(no.answer, Answer::refused);
  EXPECT_THAT(no.instead, ::testing::Contains("num_nodes: 3: GPUs idle 46.9 %"));
}

TEST(Judge, EachOfferKeepsItsPromise) {
  const Exchange exchange{2e9, 1.5, 1};
  const Wire wire{0.5e9, 0.01};
  EXPECT_LE(synchronous_step({2e9, 1.5, 23}, wire, 4).idle_share, k_idle_good);
  EXPECT_GT(synchronous_step({2e9, 1.5, 22}, wire, 4).idle_share, k_idle_good);
  EXPECT_LE(synchronous_step(exchange, {11.7e9, 0.002}, 4).idle_share, k_idle_good);
}

TEST(Judge, LetsAFastIslandPass) {
  const LinkVerdict yes = judge_link({{14e9, 6, 1}, 4, 8}, k_room);
  EXPECT_EQ(yes.answer, Answer::fits);
  EXPECT_EQ(yes.arithmetic,
            "14 GB of gradients a step over 12.5 GB/s take 2.4 s between 4 hosts, computing 6 s: GPUs idle 28.6 %");
  EXPECT_THAT(yes.instead, IsEmpty());
}

TEST(Judge, LetsRareSynchronisationPassOverTheWan) {
  EXPECT_EQ(judge_link({{2.2e9, 2.5, 500}, 4, 8}, k_wan).answer, Answer::fits);
  EXPECT_EQ(
      judge_link({{2.2e9, 2.5, 500}, 4, 8}, k_wan).arithmetic,
      "2.2 GB of gradients every 500 steps over 0.1 GB/s take 47.3 s between 4 hosts, computing 20.8 min: GPUs idle "
      "3.6 %");
}

TEST(Judge, SaysWhatItCannotCompare) {
  const LinkVerdict open = judge_link({{80e9, 0, 1}, 2, 8}, k_wan);
  EXPECT_EQ(open.answer, Answer::unknown);
  EXPECT_EQ(
      open.arithmetic,
      "80 GB of gradients a step over 0.1 GB/s take 19 min between 2 hosts; the compute time of a step is unknown "
      "(workload.step)");
  EXPECT_EQ(judge_link({{0, 0, 1}, 2, 8}, k_wan).answer, Answer::fits);
  EXPECT_EQ(judge_link({{80e9, 1, 1}, 1, 8}, k_wan).answer, Answer::fits);
}

TEST(HonestAnswers, HaveTheirNumbers) {
  const CardFigures card{"RTX 4090", 24e9, 1008e9};
  EXPECT_EQ(
      replicate_memory_answer(card, {0.0125e9, 0.03}),
      "the memory of a GPU is not replicated: RTX 4090 writes up to 1008 GB/s, the link carries 0.0125 GB/s, 80640 "
      "times less; a copy of its 24 GB would be 32 min old when it arrives. Instead, use checkpoints, and "
      "checkpoint.standby to keep the newest one ready on another host");
  EXPECT_EQ(
      join_cards_answer(card, {0.0125e9, 0.03}),
      "GPUs of two hosts cannot act as one: the data that RTX 4090 reads from its own memory in 0.992 ms (1 GB at 1008 GB/s) "
      "takes 80 s over a link of 0.0125 GB/s. Instead, use one host whose GPUs together have the memory, or a replica "
      "of the model on each GPU with rare synchronisation, or independent tasks");
}

TEST(Figures, AreShortAndNeverRoundToNothingOrEverything) {
  EXPECT_EQ(bytes_text(80e9), "80 GB");
  EXPECT_EQ(bytes_text(1.5e6), "1.5 MB");
  EXPECT_EQ(bytes_text(999.7e6), "1 GB");
  EXPECT_EQ(rate_text(0.0114e9), "0.0114 GB/s");
  EXPECT_EQ(time_text(0.32), "320 ms");
  EXPECT_EQ(time_text(1142.9), "19 min");
  EXPECT_EQ(time_text(86400 * 3), "3 days");
  EXPECT_EQ(share_text(0.99999), "over 99.9 %");
  EXPECT_EQ(share_text(0.00001), "under 0.1 %");
  EXPECT_EQ(share_text(0), "0 %");
  EXPECT_EQ(share_text(0.998), "99.8 %");
}
}  // namespace
}  // namespace gridctl::sched::physics_test
