// SPDX-License-Identifier: Apache-2.0
// Hosts that end at a known instant.
#include "sched/host_end.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/gang.hpp"
#include "sched/place.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::sched::host_end_test {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr WallTime k_end{1'800'000'000'000};

job::Spec a_job() {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  return spec;
}
HostFacts ending_in(Duration left, const std::string& name = "ada") {
  return AHost(name).set([&](HostFacts& host) {
    host.until = k_end;
    host.left = left;
  });
}
Decision placed(const job::Spec& spec, Duration left) { return place(spec, {ending_in(left)}, {}); }
std::string refusal(const job::Spec& spec, Duration left) {
  const Decision decision = placed(spec, left);
  return decision.placement ? "" : decision.rejections.at(0).code + ": " + decision.rejections.at(0).detail;
}

TEST(HostEnd, IsNoMatterWhereNobodyKnowsOfOne) {
  EXPECT_TRUE(place(a_job(), {AHost("ada")}, {}).placement);
  EXPECT_EQ(refusal(a_job(), 24h), "");
}

TEST(HostEnd, TurnsAwayAJobWhoseWorkDoesNotFitAndThatDoesNotSave) {
  job::Spec spec = a_job();
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  spec.workload.work = 2h;
  EXPECT_EQ(refusal(spec, 3h), "");
  EXPECT_EQ(refusal(spec, 1h), "ends: it ends at " + format_rfc3339(k_end) + ", in 1.0h; the job needs 2.0h there, and saves no checkpoints");
  EXPECT_TRUE(placed(spec, 1h).could_ever_fit) << "it may be there for longer: nobody gives up";
  spec.workload.work.reset();
  spec.max_duration = 90min;
  EXPECT_THAT(refusal(spec, 1h), HasSubstr("saves no checkpoints"));
  EXPECT_EQ(refusal(spec, 2h), "");
}

TEST(HostEnd, TakesAJobThatSavesForAsLongAsItCan) {
  job::Spec spec = a_job();
  spec.checkpoint.path = "out";
  spec.workload.work = 10h;
  EXPECT_EQ(refusal(spec, 1h), "") << "it works for an hour and moves on";
  EXPECT_THAT(refusal(spec, 2min), HasSubstr("to start there, work for a minute and save"));
  spec.workload.work = 10s;
  EXPECT_EQ(refusal(spec, 2min), "") << "it is done before";
  EXPECT_THAT(refusal(spec, 0s), HasSubstr("its time ended at " + format_rfc3339(k_end)));
  EXPECT_THAT(refusal(spec, -1h), HasSubstr("gridctl provider set ada --until"));
}

TEST(HostEnd, TurnsAwayALongJobThatHasNotSavedYetAndSaysNothingOfSaving) {
  job::Spec spec = a_job();
  spec.workload.work = 10h;
  EXPECT_THAT(refusal(spec, 1h), HasSubstr("saves no checkpoints"));
  JobKnowledge known = knowledge_of(spec);
  known.task.resumes = true;
  EXPECT_TRUE(place(spec, {ending_in(1h)}, {}, known).placement) << "it has saved before";
  spec.workload.work.reset();
  EXPECT_EQ(refusal(spec, 1h), "") << "what nobody knows forbids nothing";
}

TEST(HostEnd, OtherHostsAreTakenInstead) {
  const Decision decision = place(a_job(), {ending_in(1min), AHost("bob").at(5)}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "bob");
  EXPECT_THAT(explain(decision), ::testing::Contains(HasSubstr("ends")));
}

TEST(HostEnd, CountsForEachMemberOfAGang) {
  job::Spec spec = a_job();
  spec.num_nodes = 2;
  GangWish wish;
  const auto gang = [&](Duration left) {
    return place_gang(spec, wish, {ending_in(left, "ada"), AHost("bob")}, {}, {}, {}, knowledge_of(spec));
  };
  EXPECT_TRUE(gang(5h).plan);
  const GangDecision short_one = gang(1min);
  EXPECT_FALSE(short_one.plan);
  EXPECT_EQ(short_one.rejections.at(0).code, "ends");
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  spec.workload.work = 3h;
  EXPECT_TRUE(gang(2h).plan) << "both work at it";
  EXPECT_FALSE(gang(1h).plan);
}

TEST(HostEnd, LeavesTimeForTwoCheckpointsAndTheStop) {
  EXPECT_EQ(lead_before_end({5s, 20s, {}}), 2 * 25s + 10s + 60s + 60s);
  EXPECT_EQ(lead_before_end({}), 2 * 5s + 10s + 60s + 60s) << "five seconds are assumed";
  EXPECT_EQ(lead_before_end({1h, 1h, {}}), 30min);
}

TEST(HostEnd, BringsTheLastCheckpointForward) {
  Interval hourly;
  hourly.every = 1h;
  hourly.pause = 30s;
  hourly.soon = 10s;
  EXPECT_EQ(before_end(hourly, 2h).every, 1h);
  const Interval last = before_end(hourly, 40min);
  EXPECT_EQ(last.every, 40min);
  EXPECT_THAT(last.reason, HasSubstr("ends soon"));
  EXPECT_EQ(before_end(hourly, 20s).pause, 10s);
  EXPECT_EQ(before_end(hourly, 5s).every, 1h) << "it is asked to leave just now";
}

}  // namespace
}  // namespace gridctl::sched::host_end_test
