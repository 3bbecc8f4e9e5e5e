// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "base/text.hpp"
#include "questions.hpp"

namespace gridctl::plan::wanted_test {
namespace {

using testing::question;
using ::testing::HasSubstr;

TEST(Wanted, NamesThePartThatIsWrong) {
  const auto says = [](const char* text) { return read_wanted(text).error().message; };
  EXPECT_THAT(says("tpp=2"), HasSubstr("did you mean 'tp'?"));
  EXPECT_THAT(says("tp=0"), HasSubstr("at least 1"));
  EXPECT_THAT(says("zero=4"), HasSubstr("0, 1, 2 or 3"));
  EXPECT_THAT(says("recompute=some"), HasSubstr("none, selective or full"));
  EXPECT_THAT(says("offload=disk"), HasSubstr("none, optimizer, all or activations"));
  EXPECT_THAT(says("dp"), HasSubstr("a number"));
}

TEST(Wanted, AreReadWithTheirLimits) {
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

TEST(Wanted, AreJudgedByThemselves) {
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

}  // namespace
}  // namespace gridctl::plan::wanted_test
