// SPDX-License-Identifier: Apache-2.0
#include "sched/elastic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/gang.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::sched::elastic_test {
namespace {
using ::testing::HasSubstr;
using std::chrono::seconds;

GrowthFacts three_that_could_be_four() {
  GrowthFacts facts{.members = 3, .would_be = 4, .runs = seconds{600}, .there = seconds{20}, .restart = 30};
  facts.ran = 3600;
  return facts;
}

TEST(Elastic, GrowsWhenItPaysAndSaysWhatItSaves) {
  const GrowthVerdict verdict = judge_growth(three_that_could_be_four());
  EXPECT_TRUE(verdict.grows);
  EXPECT_THAT(verdict.text, HasSubstr("4 hosts instead of 3 save 15m"));
}

TEST(Elastic, StaysWhileHostsComeAndGo) {
  GrowthFacts facts = three_that_could_be_four();
  facts.there = seconds{9};
  EXPECT_FALSE(judge_growth(facts).grows);
}

TEST(Elastic, RestartsCostATenthAtMost) {
  GrowthFacts facts = three_that_could_be_four();
  facts.runs = seconds{269};
  EXPECT_FALSE(judge_growth(facts).grows);
  facts.runs = seconds{270};
  EXPECT_TRUE(judge_growth(facts).grows);
}

TEST(Elastic, StaysWhenItIsNearlyDoneOrWouldFailSoon) {
  GrowthFacts facts = three_that_could_be_four();
  facts.left = 120;  // a quarter of that is what the restart costs
  EXPECT_FALSE(judge_growth(facts).grows);
  facts.left = 130;
  EXPECT_TRUE(judge_growth(facts).grows);
  facts.failures_per_hour = 31;  // after the next failure it has four anyway
  EXPECT_FALSE(judge_growth(facts).grows);
}

// --- Placing -------------------------------------------------------------------------------------------------------

HostFacts h100s(const char* name, double price) {
  HostFacts host = AHost(name).with_gpus(8, "NVIDIA H100 80GB HBM3", 81559).at(price);
  host.site = "hpc";
  return host;
}

struct Grid {
  std::vector<HostFacts> hosts{h100s("ada", 1), h100s("bob", 2), h100s("cyd", 3), h100s("dan", 4)};
  job::Spec spec;
  Grid() {
    spec.name = spec.run = "train";
    spec.num_nodes = 4;
    spec.gang.nodes_min = 2;
    spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 8, 8}};
  }
  void take(std::size_t host) {
    for (const Gpu& gpu : hosts[host].inventory->gpus) hosts[host].busy_gpus.push_back(gpu.uuid);
  }
  [[nodiscard]] GangWish wish() const { return {.members = 4, .near = Near::site, .members_min = job::nodes_least(spec)}; }
  [[nodiscard]] GangDecision decide(const std::vector<Avoid>& avoided = {}) const {
    return place_gang(spec, wish(), hosts, topology_of(hosts, {}), {}, avoided, knowledge_of(spec));
  }
  [[nodiscard]] std::size_t size(const std::vector<Avoid>& avoided = {}) const {
    const GangDecision decision = decide(avoided);
    return decision.plan ? decision.plan->members.size() : 0;
  }
};

TEST(Elastic, TakesAsManyHostsAsThereAreDownToTheLeast) {
  Grid grid;
  EXPECT_EQ(grid.size(), 4u);
  grid.take(0);
  EXPECT_EQ(grid.size(), 3u);
  grid.take(1);
  EXPECT_EQ(grid.size(), 2u);
  grid.take(2);
  const GangDecision none = grid.decide();
  EXPECT_FALSE(none.plan);
  EXPECT_TRUE(none.could_ever_fit);
  EXPECT_THAT(summary(none, grid.wish()), HasSubstr("1 provider can run a member now, 2 are needed"));
}

TEST(Elastic, LeavesOutAHostThatFailedItRatherThanStayLarge) {
  const Grid grid;
  EXPECT_EQ(grid.size({{{"bob"}, "it could not start"}}), 3u);
  EXPECT_EQ(grid.size({{{"bob"}, "x"}, {{"cyd"}, "x"}, {{"dan"}, "x"}}), 2u) << "it cannot do without one of them";
}

TEST(Elastic, OneMachineUnderTwoNamesIsOneMember) {
  Grid grid;
  grid.hosts[0].inventory.edit().machine_id = grid.hosts[1].inventory.edit().machine_id = "m";
  EXPECT_EQ(grid.size(), 3u);
}

TEST(Elastic, MayBeLeftWithOneHostThatIsNearToNobody) {
  Grid grid;
  grid.spec.gang.nodes_min = 1;
  for (HostFacts& host : grid.hosts) host.site = host.name.value;
  EXPECT_EQ(grid.size(), 1u);
  grid.hosts.clear();
  EXPECT_FALSE(grid.decide().could_ever_fit);
}

TEST(Elastic, FixedGangsHaveOneSize) {
  Grid grid;
  grid.spec.gang.nodes_min = 0;
  EXPECT_EQ(grid.size(), 4u);
  grid.take(0);
  EXPECT_EQ(grid.size(), 0u);
}

}  // namespace
}  // namespace gridctl::sched::elastic_test
