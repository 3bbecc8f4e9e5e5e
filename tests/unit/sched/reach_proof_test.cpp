// SPDX-License-Identifier: Apache-2.0
#include "sched/reach_proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::sched::reach_proof_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

ReachOutcome reached(const std::string& from, const std::string& to, std::optional<double> there = {},
                     std::optional<double> back = {}) {
  ReachOutcome outcome;
  outcome.from = from;
  outcome.to = to;
  outcome.port = 20'032;
  outcome.connected = true;
  outcome.address = "10.0.0.7";
  outcome.there = there;
  outcome.back = back;
  return outcome;
}

TEST(ReachProof, EverybodyReachesTheFirstAndItsNeighbour) {
  EXPECT_THAT(pairs_to_prove(2), UnorderedElementsAre(Pair(1, 0), Pair(0, 1)));
  EXPECT_THAT(pairs_to_prove(4),
              UnorderedElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0), Pair(0, 1), Pair(1, 2), Pair(2, 3)));
  EXPECT_TRUE(pairs_to_prove(1).empty());
}

TEST(ReachProof, APairThatDoesNotReachIsNamedWithThePortTheReasonAndTheFix) {
  ReachOutcome outcome = reached("bob", "ada");
  outcome.connected = false;
  outcome.reason = "10.0.0.7: no answer";
  const ReachVerdict verdict = judge_reach(std::vector{reached("cyd", "ada"), outcome}, {{}, 32});
  EXPECT_FALSE(verdict.good);
  EXPECT_EQ(verdict.why, "bob does not reach ada on port 20032: 10.0.0.7: no answer");
  EXPECT_THAT(verdict.fixes.at(0), HasSubstr("ports 20032-20063"));
}

TEST(ReachProof, TheSlowestWayIsNamedWithBothNumbers) {
  const std::vector outcomes{reached("bob", "ada", 9.4e9, 9.3e9), reached("cyd", "ada", 9.4e9, 0.9e9)};
  const ReachVerdict verdict = judge_reach(outcomes, {8e9, 32});
  EXPECT_FALSE(verdict.good);
  EXPECT_EQ(verdict.why, "ada to cyd carries 900 Mbit/s, but the job's exchanges need 8.0 Gbit/s");
  EXPECT_THAT(verdict.fixes.at(0), HasSubstr("interconnect: any"));
  EXPECT_TRUE(judge_reach(outcomes, {0.8e9, 32}).good);
  EXPECT_TRUE(judge_reach(outcomes, {}).good);  // nothing is needed that is known
}

TEST(ReachProof, WhatWasNotMeasuredForbidsNothing) {
  EXPECT_TRUE(judge_reach(std::vector{reached("bob", "ada")}, {8e9, 32}).good);
}

TEST(ReachProof, AHostWhoseOutgoingConnectionsTakeTheGangsPortsIsTold) {
  ReachOutcome outcome = reached("bob", "ada");
  outcome.ephemeral_first = 10'000;
  const ReachVerdict verdict = judge_reach(std::vector{outcome, outcome}, {{}, 32});
  EXPECT_TRUE(verdict.good);
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_THAT(verdict.notes[0], HasSubstr("ada gives ports from 10000 on"));
  outcome.ephemeral_first = 32'768;
  EXPECT_TRUE(judge_reach(std::vector{outcome}, {{}, 32}).notes.empty());
}

TEST(ReachProof, WhatTheExchangesNeedFollowsFromTheJob) {
  job::Spec spec;
  spec.num_nodes = 4;
  spec.workload.params = 7e9;
  spec.workload.step = 2s;
  const auto needed = needed_bits_per_second(spec, 1ms);
  ASSERT_TRUE(needed);
  // 2 (n-1)/n x 14 GB in 2 s, of a link that a collective gets seven tenths of.
  EXPECT_NEAR(*needed, 1.5 * 14e9 * 8 / 2 / 0.7, 0.02 * *needed);
  spec.constraints.any_interconnect = true;
  EXPECT_FALSE(needed_bits_per_second(spec, 1ms));
  spec.constraints.any_interconnect = false;
  spec.workload.step.reset();
  EXPECT_FALSE(needed_bits_per_second(spec, 1ms));
}

}  // namespace
}  // namespace gridctl::sched::reach_proof_test
