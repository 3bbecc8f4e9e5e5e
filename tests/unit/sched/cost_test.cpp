// SPDX-License-Identifier: Apache-2.0
#include "sched/cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/interval.hpp"
#include "sched/place.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::sched::cost_test {
namespace {
using ::testing::HasSubstr;

WorkEstimate a_task(double hours) {
  WorkEstimate task;
  task.work = hours * 3600;
  task.stall = 5;
  return task;
}

TEST(Cost, OfAHostThatNeverFailsIsItsWorkAndItsStart) {
  WorkEstimate task = a_task(10);
  task.saves = false;
  const Estimate end = to_finish(task, {.price_per_hour = 2, .speed = 2, .start = 36});
  EXPECT_DOUBLE_EQ(end.takes(), 5 * 3600 + 36);
  EXPECT_DOUBLE_EQ(end.cost(), 2 * (5 + 0.01));
}

TEST(Cost, AgreesWithDalysModelAtTheBestInterval) {
  for (const double mtbf_h : {0.5, 2.0, 20.0, 500.0}) {
    const Estimate end = to_finish(a_task(40), {.failures_per_hour = 1 / mtbf_h, .start = 30});
    const double mtbf = mtbf_h * 3600;
    const double model = expected_time(40 * 3600, optimal_interval(5, mtbf), 5, mtbf, 60 + 30);
    EXPECT_NEAR(end.takes(), model + 30, model * 1e-9) << mtbf_h;
    EXPECT_GT(end.lost, 0);
    EXPECT_GT(end.recovery, 0);
    EXPECT_NEAR(end.interval, optimal_interval(5, mtbf), 1);
  }
}

TEST(Cost, CountsWhatACheckpointNeedsToBeSafe) {
  WorkEstimate task = a_task(10);
  task.state_bytes = 10e9;
  const HostGroup fast{.failures_per_hour = 0.1, .down = 1e9, .up = 1e9};
  HostGroup home = fast;
  home.up = 1.25e6;  // 10 Mbit/s: 8000 s
  const Estimate slow = to_finish(task, home);
  EXPECT_DOUBLE_EQ(slow.interval, 8000);
  EXPECT_GT(slow.lost, 10 * to_finish(task, fast).lost);
}

TEST(Cost, WithoutCheckpointsALongJobOnAFlakyHostNeverEnds) {
  WorkEstimate task = a_task(10'000);
  task.saves = false;
  const Estimate end = to_finish(task, {.price_per_hour = 1, .failures_per_hour = 1});
  EXPECT_GT(end.takes(), 1e300);
  EXPECT_EQ(describe(end), "never: the host fails before the work is done");
}

TEST(Cost, TellsItsParts) {
  WorkEstimate task = a_task(100);
  task.input_bytes = 36e9;
  const Estimate end = to_finish(task, {.failures_per_hour = 0.5, .start = 10, .down = 1e6});
  EXPECT_EQ(describe(end), "5d (work 4d, checkpoints 1.9h, repeated work 1.9h, transfer 10h)");
}

TEST(Speed, IsAsMeasuredElseAsTheModelLetsExpect) {
  HostFacts host = AHost("ada").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920);
  const std::vector<const Gpu*> both{&host.inventory->gpus[0], &host.inventory->gpus[1]};
  EXPECT_NEAR(speed_of(host, both), 2, 0.25);
  EXPECT_DOUBLE_EQ(speed_of(host, {both[0]}) * 2, speed_of(host, both));
  host.figures["total_flops"] = 250;  // both together
  EXPECT_DOUBLE_EQ(speed_of(host, both), 1);
  EXPECT_DOUBLE_EQ(speed_of(host, {}), 1);
  HostFacts unknown = AHost("bob").with_gpus(1, "A GPU of tomorrow", 81920);
  EXPECT_DOUBLE_EQ(speed_of(unknown, {&unknown.inventory->gpus[0]}), k_unknown_tflops / k_reference_tflops);
}

job::Spec a_gpu_job() {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 1, 1}};
  return spec;
}
HostFacts with_class(HostFacts host, const char* host_class) {
  host.host_class = host_class;
  return host;
}

// The point of it all: what an hour costs is not what the job costs.
TEST(Place, TakesTheHostThatIsCheapestToTheEnd) {
  const HostFacts slow = AHost("slow").with_gpus(1, "NVIDIA GeForce RTX 3060", 12288).at(0.20);
  const HostFacts fast = AHost("fast").with_gpus(1, "NVIDIA H100 80GB HBM3", 81559).at(1.80);
  const Decision decision = place(a_gpu_job(), {slow, fast}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "fast");
  EXPECT_LT(decision.placement->estimate.cost(), decision.runners_up.at(0).estimate.cost());
  EXPECT_THAT(decision.placement->reason, HasSubstr("cheapest of 2 suitable hosts"));
  EXPECT_THAT(decision.placement->reason, HasSubstr("USD per A100-hour of work"));
  EXPECT_THAT(decision.runners_up.at(0).reason, HasSubstr("more expensive in total"));
}

TEST(Place, TakesADearerHostThatFailsSeldomWhenFailuresCostMore) {
  job::Spec spec = a_gpu_job();
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;  // each failure throws all away
  const auto a100 = [](const char* name, double price) {
    return AHost(name).with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(price);
  };
  HostFacts flaky = with_class(a100("flaky", 1.0), "market");
  HostFacts steady = with_class(a100("steady", 1.4), "datacenter");
  flaky.figures["mtbf"] = 3;
  EXPECT_EQ(place(spec, {flaky, steady}, {}).placement->host.value, "steady");
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::automatic;  // then a failure costs little
  EXPECT_EQ(place(spec, {flaky, steady}, {}).placement->host.value, "flaky");
  spec.optimize = job::Optimize::reliability;
  EXPECT_EQ(place(spec, {flaky, steady}, {}).placement->host.value, "steady");
}

TEST(Place, OptimizesTimeWhenAsked) {
  job::Spec spec = a_gpu_job();
  const HostFacts slow = AHost("slow").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(0.50);
  const HostFacts fast = AHost("fast").with_gpus(1, "NVIDIA H100 80GB HBM3", 81559).at(9);
  EXPECT_EQ(place(spec, {slow, fast}, {}).placement->host.value, "slow");
  spec.optimize = job::Optimize::time;
  EXPECT_EQ(place(spec, {slow, fast}, {}).placement->host.value, "fast");
}

TEST(Place, CountsWhatAHostHasAlready) {
  HostFacts near = AHost("near").at(1.01), far = AHost("far").at(1);
  near.figures["inet_down"] = far.figures["inet_down"] = 100;  // Mbit/s
  job::Spec spec = a_gpu_job();
  spec.resources.gpus.clear();
  JobKnowledge known = knowledge_of(spec);
  known.task.input_bytes = 100e9;  // over two hours
  EXPECT_EQ(place(spec, {near, far}, {}, known).placement->host.value, "far");
  known.bytes_there[HostName{"near"}] = 100e9;
  EXPECT_EQ(place(spec, {near, far}, {}, known).placement->host.value, "near");
}

TEST(Place, TellsTheWholeCostWhenTheWorkIsKnown) {
  job::Spec spec = a_gpu_job();
  JobKnowledge known = knowledge_of(spec);
  known.task.work = 40 * 3600;
  known.work_known = true;
  const Decision decision = place(spec, {AHost("ada").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(2)}, {}, known);
  EXPECT_THAT(decision.placement->reason, ::testing::ContainsRegex("[0-9.]+ USD to finish, [0-9]+h \\(work [0-9]+h"));
}

TEST(Place, TakesTheBestOfEqualAlternatives) {
  job::Spec spec = a_gpu_job();
  spec.resources.gpus = {{std::nullopt, {"T4"}, std::nullopt, std::nullopt, 1, 1},
                         {std::nullopt, {"A100"}, std::nullopt, std::nullopt, 1, 1}};
  const std::vector<HostFacts> hosts{AHost("old").with_gpus(1, "Tesla T4", 15360).at(0.3),
                                     AHost("new").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(1)};
  EXPECT_EQ(place(spec, hosts, {}).placement->host.value, "old");  // the first wish wins
  spec.resources.any_order = true;
  EXPECT_EQ(place(spec, hosts, {}).placement->host.value, "new");  // four times as fast
}

}  // namespace
}  // namespace gridctl::sched::cost_test
