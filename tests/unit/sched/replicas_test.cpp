// SPDX-License-Identifier: Apache-2.0
#include "sched/replicas.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Asked {
  job::Spec spec;
  std::vector<HostFacts> hosts{AHost("ada").at(1), AHost("bob").at(2)};
  ReplicaPlan plan() {
    spec.run = "true";
    own = place(spec, hosts, {});
    return place_replicas(spec, hosts, own, knowledge_of(spec));
  }
  std::vector<std::string> lines() {
    const ReplicaPlan planned = plan();
    return explain(planned, spec, own);
  }
  Decision own;
};

TEST(Replicas, StandOnHostsOfTheirOwnAndCostTogether) {
  Asked asked;
  asked.spec.replicas = 2;
  const ReplicaPlan plan = asked.plan();
  ASSERT_EQ(plan.placements.size(), 2U);
  EXPECT_EQ(plan.placements[0].host.value, "ada");
  EXPECT_EQ(plan.placements[1].host.value, "bob");
  EXPECT_DOUBLE_EQ(price_of(plan), 3);
  EXPECT_THAT(asked.lines(), ElementsAre(HasSubstr("replica 2 of 2 on bob: "),
                                         "2 replicas at once cost 3.00 USD/h together, 3.0 times "
                                         "what one costs; the first to finish ends the others"));
}

TEST(Replicas, WaitForHostsThatAreNotThere) {
  Asked asked;
  asked.spec.replicas = 3;
  const ReplicaPlan plan = asked.plan();
  EXPECT_EQ(plan.placements.size(), 2U);
  EXPECT_EQ(plan.missing, "0 of 2 providers fit: 2 replica");
  EXPECT_THAT(asked.lines()[1], HasSubstr("replica 3 of 3 would wait: "));
}

TEST(Replicas, AreNotSpokenOfUnlessAskedFor) {
  Asked asked;
  EXPECT_THAT(asked.lines(), IsEmpty());
  asked.spec.checkpoint.standby = true;
  EXPECT_THAT(asked.lines(), ElementsAre(HasSubstr("kept ready on bob")));
}

TEST(Replicas, KeepOffAHostWhereAnotherIs) {
  job::Spec spec;
  spec.run = "true";
  const Decision decision =
      place(spec, {AHost("ada").set([](HostFacts& host) { host.apart = "another replica is there"; })}, {});
  ASSERT_EQ(decision.rejections.size(), 1U);
  EXPECT_EQ(decision.rejections[0].code, "replica");
  EXPECT_TRUE(decision.could_ever_fit);
}

}  // namespace
}  // namespace gridctl::sched
