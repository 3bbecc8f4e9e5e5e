// SPDX-License-Identifier: Apache-2.0
#include "sched/cheaper.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched::cheaper_test {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

// A job with some hours to go that runs on "dear" for 4 USD an hour.
struct DearHost {
  job::Spec spec;
  JobKnowledge known;
  CurrentRun present;
  std::vector<Avoid> avoided;

  explicit DearHost(double hours) {
    spec.name = "train";
    spec.run = "true";
    known = knowledge_of(spec);
    known.task.work = hours * 3600;
    known.task.stall = 5;
    known.work_known = true;
    const HostGroup group = group_of(AHost("dear").at(4), {});
    present = {{"dear"}, to_finish(known.task, group), group.failures_per_hour, 60, known.task.work};
    present.rest.start = 0;
  }
  [[nodiscard]] std::optional<std::string> judge(const std::vector<HostFacts>& others) const {
    return judge_cheaper(present, place(spec, others, avoided, for_less(known, present)), avoided);
  }
  [[nodiscard]] std::optional<std::string> at(double price) const { return judge({AHost("other").at(price)}); }
};

TEST(Cheaper, TellsWhatBothCost) {
  const auto why = DearHost(10).at(1);
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, AllOf(HasSubstr("dear needs 10h"), HasSubstr("USD to continue, other needs 10h")));
}

TEST(Cheaper, IsAFifthOfWhatGoingOnCosts) {
  EXPECT_TRUE(DearHost(100).at(3.1));
  EXPECT_FALSE(DearHost(100).at(3.3));
  EXPECT_FALSE(DearHost(100).at(8));
  EXPECT_FALSE(DearHost(100).judge({}));
}

TEST(Cheaper, IsNotWorthAStopShortBeforeTheEnd) {
  EXPECT_TRUE(DearHost(1.0 / 12).at(1)) << "five minutes: 33 cents to go on, half a minute to start there";
  EXPECT_FALSE(DearHost(1.0 / 60).at(1)) << "7 cents";
  EXPECT_FALSE(DearHost(1.0 / 60).at(0.01)) << "nearly all of 7 cents";
}

TEST(Cheaper, CountsTheRestoreThere) {
  DearHost job(1);
  HostFacts far = AHost("far").at(2);
  far.figures["inet_down"] = 100;  // Mbit/s
  job.known.task.state_bytes = 1e9;
  EXPECT_TRUE(job.judge({far}));
  job.known.task.state_bytes = 40e9;  // 53 minutes
  EXPECT_FALSE(job.judge({far}));
}

TEST(Cheaper, IsNothingThatTakesMuchLonger) {
  DearHost job(10);
  HostFacts old = AHost("old").with_gpus(1, "Tesla T4", 15360).at(0.01);
  job.spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 1, 1}};
  EXPECT_FALSE(job.judge({old}));
  EXPECT_TRUE(job.judge({AHost("alike").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(0.01)}));
}

TEST(Cheaper, IsNoHostThatIsTooLateOrFailedTheJob) {
  DearHost job(10);
  job.known.time_left = 10.5 * 3600;
  EXPECT_FALSE(job.at(1));
  job.known.time_left = 20 * 3600;
  EXPECT_TRUE(job.at(1));
  job.avoided.push_back({HostName{"other"}, "it failed the job"});
  EXPECT_FALSE(job.at(1)) << "from there the next placement would bring it back here";
}

TEST(Cheaper, IsNotAskedForJobsThatSomethingElseDecides) {
  job::Spec spec;
  EXPECT_TRUE(may_move_for_less(spec));
  spec.optimize = job::Optimize::reliability;
  EXPECT_FALSE(may_move_for_less(spec));
  spec.optimize = job::Optimize::cost;
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  EXPECT_FALSE(may_move_for_less(spec));
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::automatic;
  spec.resources.gpus.resize(2);
  EXPECT_FALSE(may_move_for_less(spec));
}

}  // namespace
}  // namespace gridctl::sched::cheaper_test
