// SPDX-License-Identifier: Apache-2.0
#include "sched/deadline.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched::deadline_test {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = DeadlineVerdict::Kind;

HostFacts a_host(std::string name, double price, double mtbf_hours) {
  HostFacts host = AHost(std::move(name)).at(price);
  host.figures["mtbf"] = mtbf_hours;
  return host;
}

job::Spec a_job() {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  return spec;
}

JobKnowledge known_with(double work_hours, double hours_left) {
  JobKnowledge known = knowledge_of(a_job());
  known.task.work = work_hours * 3600;
  known.task.stall = 5;
  known.work_known = true;
  known.time_left = hours_left * 3600;
  return known;
}

std::string chosen(const std::vector<HostFacts>& hosts, const JobKnowledge& known) {
  const Decision decision = place(a_job(), hosts, {}, known);
  return decision.placement->host.value + (decision.placement->late ? ", late" : "");
}

TEST(FailuresAtMost, AgreesWithAPoissonDistribution) {
  std::mt19937 random(7);
  for (const double expected : {0.005, 0.02, 0.5, 4.0, 60.0, 99.0, 101.0, 2000.0}) {
    std::poisson_distribution<int> draw(expected);
    constexpr int k_draws = 200'000;
    int within = 0, below = 0;
    const double most = failures_at_most(expected);
    for (int i = 0; i < k_draws; ++i) {
      const int failures = draw(random);
      within += failures <= most ? 1 : 0;
      below += failures <= most - 1 ? 1 : 0;
    }
    EXPECT_GE(within, k_draws * 0.9885) << expected;
    EXPECT_LE(below, k_draws * 0.992) << expected << ": one less would do too";
  }
  EXPECT_EQ(failures_at_most(0), 0);
}

TEST(Safely, IsATenthMoreAndTheFailuresThatMayCome) {
  Estimate end;
  end.work = 1000;
  end.failure = 300;
  EXPECT_DOUBLE_EQ(safely(end, 0), 1100);
  EXPECT_NEAR(safely(end, 0.36), 1100 + (1 - 0.1) * 300, 1e-9);  // a tenth of a failure is expected, one may come
  end.work = k_never;
  EXPECT_EQ(safely(end, 1), k_never);
}

TEST(Deadline, TakesTheCheapestHostThatIsInTime) {
  const std::vector<HostFacts> hosts{a_host("flaky", 0.2, 2), a_host("steady", 2, 5000)};
  EXPECT_EQ(chosen(hosts, known_with(10, 24)), "flaky");
  EXPECT_EQ(chosen(hosts, known_with(10, 11.5)), "steady");
  JobKnowledge unlimited = known_with(10, 24);
  unlimited.time_left.reset();
  EXPECT_EQ(chosen(hosts, unlimited), "flaky");
}

// "slow" would need 19 hours for 10 of them.
TEST(Deadline, TakesACheapHostThatIsTooSlowAsLongAsADearOneCouldStillMakeIt) {
  const std::vector<HostFacts> hosts{a_host("slow", 0.2, 500), a_host("steady", 2, 5000)};
  JobKnowledge known = known_with(10, 15);
  known.speeds[{"slow"}] = 0.5;
  const Decision decision = place(a_job(), hosts, {}, known);
  EXPECT_EQ(decision.placement->host.value, "slow");
  EXPECT_FALSE(decision.placement->late);
  EXPECT_THAT(decision.placement->reason, HasSubstr("deadline in 15h, met if the job moves to steady in time: 20h"));
  EXPECT_EQ(late_warning(decision, known), "");

  std::vector<HostFacts> thousands{hosts[0]};  // the refuge is considered by another thread than the host
  for (int i = 0; i < 4000; ++i)
    thousands.push_back(AHost("away" + std::to_string(i)).set([](HostFacts& h) { h.reachable = false; }));
  thousands.push_back(hosts[1]);
  EXPECT_EQ(place(a_job(), thousands, {}, known).placement->reason, decision.placement->reason);

  // A failure there costs an hour or so, and two on the way there and back; steady needs 10 h and a tenth more.
  known.time_left = 11.2 * 3600;
  EXPECT_EQ(chosen(hosts, known), "steady");
  EXPECT_EQ(chosen({hosts[0]}, known), "slow, late") << "with nowhere to go";
  known.time_left = 15 * 3600;
  job::Spec unsaved = a_job();
  unsaved.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  EXPECT_EQ(place(unsaved, hosts, {}, known).placement->host.value, "steady") << "it would begin anew there";
  known.failures_max = 0.001;
  EXPECT_EQ(chosen(hosts, known), "steady") << "it has been asked to keep to what fails less often";
}

TEST(Deadline, TakesTheOneThatIsDoneFirstWhenNoneIsInTime) {
  const std::vector<HostFacts> hosts{a_host("flaky", 0.2, 2), a_host("steady", 2, 5000)};
  const Decision decision = place(a_job(), hosts, {}, known_with(10, 9));
  EXPECT_EQ(decision.placement->host.value, "steady");
  EXPECT_TRUE(decision.placement->late);
  EXPECT_THAT(decision.placement->reason,
              AllOf(HasSubstr("is certain to meet the deadline"), HasSubstr("deadline in 9h")));
  EXPECT_THAT(
      late_warning(decision, known_with(10, 9)),
      AllOf(HasSubstr("no host that can run the job now is expected to finish in time"), HasSubstr("steady needs")));
  EXPECT_EQ(late_warning(place(a_job(), hosts, {}, known_with(10, 24)), known_with(10, 24)), "");
}

TEST(Deadline, ComesBeforeTheOrderOfGpus) {
  job::Spec spec = a_job();
  spec.resources.gpus = {{std::nullopt, {"T4"}, std::nullopt, std::nullopt, 1, 1},
                         {std::nullopt, {"H100"}, std::nullopt, std::nullopt, 1, 1}};
  const std::vector<HostFacts> hosts{AHost("old").with_gpus(1, "Tesla T4", 15360).at(0.3),
                                     AHost("new").with_gpus(1, "NVIDIA H100 80GB HBM3", 81559).at(9)};
  JobKnowledge known = known_with(1, 1000);
  EXPECT_EQ(place(spec, hosts, {}, known).placement->host.value, "old");
  known.time_left = 3600;
  const Decision decision = place(spec, hosts, {}, known);
  EXPECT_EQ(decision.placement->host.value, "new");
  EXPECT_THAT(decision.runners_up.at(0).reason, HasSubstr("too late: "));
}

TEST(Deadline, SaysNothingWhenNobodyKnowsHowLongTheJobTakes) {
  const std::vector<HostFacts> hosts{a_host("flaky", 0.2, 2), a_host("steady", 2, 5000)};
  JobKnowledge known = known_with(10, 1);
  known.work_known = false;
  const Decision decision = place(a_job(), hosts, {}, known);
  EXPECT_EQ(decision.placement->host.value, "flaky");
  EXPECT_FALSE(decision.placement->late);
  EXPECT_EQ(late_warning(decision, known), "");
}

TEST(Deadline, KeepsAwayFromHostsThatFailTooOftenForIt) {
  const std::vector<HostFacts> hosts{a_host("flaky", 0.2, 2), a_host("steady", 2, 5000)};
  JobKnowledge known = known_with(10, 1000);
  known.failures_max = 0.1;
  EXPECT_EQ(chosen(hosts, known), "steady");
  EXPECT_EQ(chosen({hosts[0]}, known), "flaky, late") << "it is still better than none";
}

// A job that runs on a cheap host and has just saved, beside a steady one.
struct Scene {
  double work = 1;  // hours
  CurrentRun present;
  std::vector<HostFacts> others{a_host("steady", 2, 5000)};

  explicit Scene(double mtbf_hours = 2) {
    const HostFacts here = a_host("cheap", 0.2, mtbf_hours);
    const HostGroup group = group_of(here, {});
    present = {here.name, to_finish(known_with(work, 100).task, group), group.failures_per_hour, 60};
    present.rest.start = 0;
  }
  [[nodiscard]] DeadlineVerdict judge(double hours_left, double unsaved_hours = 0) const {
    const JobKnowledge saved = known_with(work + unsaved_hours, hours_left);
    const Decision elsewhere = place(a_job(), others, {}, after_failure(saved, present));
    return judge_deadline(present, elsewhere, hours_left * 3600);
  }
};

TEST(CantBeLate, LeavesAtTheLastMomentAtWhichAFailureCouldBeMadeGood) {
  Scene scene;
  EXPECT_EQ(scene.judge(3).kind, Kind::fine);
  EXPECT_EQ(scene.judge(1.2).kind, Kind::fine);
  const DeadlineVerdict last = scene.judge(1.11);  // 1 h of work, a tenth more, a minute and a half to notice and start
  EXPECT_EQ(last.kind, Kind::leave);
  EXPECT_THAT(last.text, AllOf(HasSubstr("cheap needs 1h"), HasSubstr("steady could hardly be in time any more")));
  EXPECT_DOUBLE_EQ(last.failures_max, scene.present.failures_per_hour / 2);
}

TEST(CantBeLate, CountsWhatIsNotSaved) {
  Scene scene;
  EXPECT_EQ(scene.judge(1.6, 0.1).kind, Kind::fine);
  EXPECT_EQ(scene.judge(1.6, 0.5).kind, Kind::leave);
}

TEST(CantBeLate, StaysWhereNothingIsToBeFeared) {
  Scene steady(3000);
  EXPECT_EQ(steady.judge(1.11).kind, Kind::fine);
}

TEST(CantBeLate, StaysWhenTheOthersAreNoBetterOrTooSlowAndSaysSo) {
  Scene scene;
  scene.others = {a_host("alike", 0.2, 2.1)};
  EXPECT_EQ(scene.judge(1.11).kind, Kind::risky);
  scene.others = {};
  EXPECT_THAT(scene.judge(1.11).text, HasSubstr("no other host can run the job now"));
  Scene late;
  EXPECT_EQ(late.judge(0.9).kind, Kind::risky) << "nobody can make it any more";
  EXPECT_EQ(late.judge(-1).kind, Kind::fine) << "it is over";
}

TEST(CantBeLate, LeavesAHostThatIsTooSlowWhileAFastOneCanStillMakeIt) {
  Scene scene(100'000);
  scene.others = {AHost("fast").with_gpus(1, "NVIDIA H100 80GB HBM3", 81559).at(9)};
  job::Spec spec = a_job();
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 1, 1}};
  const Placement there = *place(spec, scene.others, {}, known_with(1, 100)).placement;
  const auto judge = [&](double seconds_left) {
    const JobKnowledge saved = known_with(1, seconds_left / 3600);
    return judge_deadline(scene.present, place(spec, scene.others, {}, after_failure(saved, scene.present)),
                          seconds_left);
  };
  ASSERT_LT(there.safely, 0.8 * scene.present.rest.takes());
  EXPECT_EQ(judge(there.safely + 70).kind, Kind::fine) << "it can still be waited with the fast one";
  EXPECT_EQ(judge(there.safely + 50).kind, Kind::leave);
  EXPECT_EQ(judge(there.estimate.takes() - 10).kind, Kind::risky);
}

}  // namespace
}  // namespace gridctl::sched::deadline_test
