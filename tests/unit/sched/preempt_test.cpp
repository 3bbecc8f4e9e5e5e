// SPDX-License-Identifier: Apache-2.0
#include "sched/preempt.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched::preempt_test {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* k_a100 = "NVIDIA A100-SXM4-80GB";

// Hosts of 4 GPUs each, and jobs on them.
struct Grid {
  std::vector<HostFacts> empty;
  std::vector<Holder> holders;
  job::Spec spec;
  std::vector<Avoid> avoided;

  explicit Grid(int gpus_wanted, int hosts = 1) {
    for (int i = 0; i < hosts; ++i) empty.push_back(AHost("h" + std::to_string(i)).with_gpus(4, k_a100, 81920).at(1));
    spec.name = "urgent";
    spec.run = "true";
    spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, gpus_wanted, gpus_wanted}};
    spec.resources.cpus = 0.1;
  }
  // A job that holds these GPUs of a host.
  Grid& runs(const std::string& name, int host, std::vector<int> gpus, int priority, std::int64_t began = 0) {
    Holder one{{name}, priority, false, began, empty[static_cast<std::size_t>(host)].name, {}, 0.1, 0};
    for (const int gpu : gpus)
      one.gpu_uuids.push_back(empty[static_cast<std::size_t>(host)].inventory->gpus[static_cast<std::size_t>(gpu)].uuid);
    holders.push_back(std::move(one));
    return *this;
  }
  [[nodiscard]] std::vector<std::string> leave() const {
    std::vector<std::string> names;
    if (const auto plan = preempt(spec, empty, holders, avoided, knowledge_of(spec)))
      for (const JobId& job : plan->jobs) names.push_back(job.value);
    return names;
  }
};

TEST(Preempt, AsksAsFewAsWillDo) {
  Grid grid(2);
  grid.runs("one", 0, {0}, 0).runs("two", 0, {1, 2}, 0).runs("three", 0, {3}, 0);
  EXPECT_EQ(grid.leave().size(), 1u);
  EXPECT_THAT(grid.leave(), ElementsAre("two"));
}

TEST(Preempt, AsksThoseOfTheLowestPriorityAndThenTheYoungest) {
  Grid grid(1);
  grid.runs("high", 0, {0}, 5, 90).runs("old", 0, {1}, 1, 10).runs("young", 0, {2}, 1, 80).runs("mid", 0, {3}, 3, 99);
  EXPECT_THAT(grid.leave(), ElementsAre("young"));
  grid.spec.resources.gpus[0].count_min = grid.spec.resources.gpus[0].count_max = 2;
  EXPECT_THAT(grid.leave(), ElementsAre("old", "young"));
}

TEST(Preempt, AsksTheYoungestAlsoOnSeveralHosts) {
  Grid grid(4, 3);
  grid.runs("old", 0, {0, 1, 2, 3}, 1, 10).runs("young", 1, {0, 1, 2, 3}, 1, 80).runs("mid", 2, {0, 1, 2, 3}, 1, 40);
  EXPECT_THAT(grid.leave(), ElementsAre("young"));
}

TEST(Preempt, RoomOnAHostThatItAvoidsIsNoReasonToWaitForAnother) {
  Grid grid(2, 2);
  grid.runs("lesser", 0, {0, 1, 2, 3}, 0).runs("beside", 1, {0}, 0);
  EXPECT_THAT(grid.leave(), IsEmpty()) << "it goes to the other host";
  grid.avoided.push_back({grid.empty[1].name, "it failed this job"});
  EXPECT_THAT(grid.leave(), ElementsAre("lesser")) << "it waits for this one, and does not go there";
  grid.avoided.clear();
  grid.empty[1].shunned = "it fails 26 times as often as others";
  EXPECT_THAT(grid.leave(), ElementsAre("lesser"));
}

TEST(Preempt, TakesTheHostWhereTheLeastImportantRun) {
  Grid grid(4, 2);
  grid.runs("big", 0, {0, 1, 2, 3}, 5);
  grid.runs("a", 1, {0}, 1).runs("b", 1, {1}, 1).runs("c", 1, {2, 3}, 2);
  EXPECT_EQ(grid.leave().size(), 3u) << "three of priority 2 at most rather than one of 5";
  for (Holder& holder : grid.holders) holder.priority = 1;
  EXPECT_THAT(grid.leave(), ElementsAre("big")) << "one rather than three";
}

TEST(Preempt, KeepsToWhomItHasAskedAlready) {
  Grid grid(1);
  grid.runs("asked", 0, {0, 1}, 4, 0).runs("younger", 0, {2, 3}, 1, 50);
  grid.holders[0].leaving = true;
  EXPECT_THAT(grid.leave(), ElementsAre("asked"));
}

TEST(Preempt, AsksNobodyInVain) {
  Grid large(8);
  large.runs("all", 0, {0, 1, 2, 3}, 0);
  EXPECT_THAT(large.leave(), IsEmpty()) << "it would not fit on the empty host";
  Grid fits(2);
  fits.runs("small", 0, {0}, 0);
  EXPECT_THAT(fits.leave(), IsEmpty()) << "it fits beside it";
  EXPECT_THAT(Grid(1).leave(), IsEmpty());
}

// Whoever is asked is needed: with any one of them staying, it does not fit.
TEST(Preempt, NeverAsksOneThatCouldStay) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int planned = 0;
  for (int round = 0; round < 300; ++round) {
    Grid grid(1 + below(4), 1 + below(3));
    for (std::size_t host = 0; host < grid.empty.size(); ++host)
      for (int gpu = 0; gpu < 4;) {
        const int count = std::min(1 + below(3), 4 - gpu);
        std::vector<int> gpus;
        for (int i = 0; i < count; ++i) gpus.push_back(gpu + i);
        if (below(5) > 0)
          grid.runs("j" + std::to_string(grid.holders.size()), static_cast<int>(host), gpus, below(3), below(100));
        gpu += count;
      }
    const auto plan = preempt(grid.spec, grid.empty, grid.holders, {}, knowledge_of(grid.spec));
    if (!plan) continue;
    ++planned;
    const auto fits_without = [&](const std::vector<JobId>& gone) {
      std::vector<HostFacts> hosts;
      for (const HostFacts& host : grid.empty)
        if (host.name == plan->placement.host) hosts.push_back(host);
      for (const Holder& holder : grid.holders)
        if (holder.host == hosts.front().name && std::find(gone.begin(), gone.end(), holder.job) == gone.end())
          take_away(hosts.front(), holder.gpu_uuids, holder.cpus, holder.memory_bytes);
      return place(grid.spec, hosts, {}).placement.has_value();
    };
    EXPECT_TRUE(fits_without(plan->jobs)) << "round " << round;
    for (std::size_t i = 0; i < plan->jobs.size(); ++i) {
      std::vector<JobId> fewer = plan->jobs;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(fits_without(fewer)) << "round " << round;
    }
  }
  EXPECT_GT(planned, 50);
}

}  // namespace
}  // namespace gridctl::sched::preempt_test
