// SPDX-License-Identifier: Apache-2.0
#include "sched/twins.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched::twins_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Asked {
  job::Spec spec;
  std::vector<HostFacts> hosts{AHost("ada").at(1), AHost("bob").at(2)};
  TwinPlan plan() {
    spec.run = "true";
    own = place(spec, hosts, {});
    return place_twins(spec, hosts, own, knowledge_of(spec));
  }
  std::vector<std::string> lines() {
    const TwinPlan planned = plan();
    return explain(planned, spec, own);
  }
  Decision own;
};

TEST(Twins, StandOnHostsOfTheirOwnAndCostTogether) {
  Asked asked;
  asked.spec.twins = 2;
  const TwinPlan plan = asked.plan();
  ASSERT_EQ(plan.placements.size(), 2U);
  EXPECT_EQ(plan.placements[0].host.value, "ada");
  EXPECT_EQ(plan.placements[1].host.value, "bob");
  EXPECT_DOUBLE_EQ(price_of(plan), 3);
  EXPECT_THAT(asked.lines(), ElementsAre(HasSubstr("twin 2 of 2 on bob: "),
                                         "2 twins at once cost 3.00 USD/h together, 3.0 times "
                                         "what one costs; the first to finish ends the others"));
}

TEST(Twins, WaitForHostsThatAreNotThere) {
  Asked asked;
  asked.spec.twins = 3;
  const TwinPlan plan = asked.plan();
  EXPECT_EQ(plan.placements.size(), 2U);
  EXPECT_EQ(plan.missing, "0 of 2 providers fit: 2 replica");
  EXPECT_THAT(asked.lines()[1], HasSubstr("twin 3 of 3 would wait: "));
}

TEST(Twins, AreNotSpokenOfUnlessAskedFor) {
  Asked asked;
  EXPECT_THAT(asked.lines(), IsEmpty());
  asked.spec.checkpoint.standby = true;
  EXPECT_THAT(asked.lines(), ElementsAre(HasSubstr("kept ready on bob")));
}

TEST(Twins, KeepOffAHostWhereAnotherIs) {
  job::Spec spec;
  spec.run = "true";
  const Decision decision =
      place(spec, {AHost("ada").set([](HostFacts& host) { host.apart = "another twin is on this host"; })}, {});
  ASSERT_EQ(decision.rejections.size(), 1U);
  EXPECT_EQ(decision.rejections[0].code, "replica");
  EXPECT_TRUE(decision.could_ever_fit);
}

}  // namespace
}  // namespace gridctl::sched::twins_test
