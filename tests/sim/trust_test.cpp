// SPDX-License-Identifier: Apache-2.0
// Red team: a lent host that puts code into a checkpoint, so that it runs on a machine of the user's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "host.hpp"
#include "memory_records.hpp"
#include "registry/registry.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim::trust_test {
namespace {

constexpr Nanos k_patience = 60 * k_min;

// The first host is lent and costs nothing, so that it is chosen; the second is the user's own.
class Grid {
 public:
  explicit Grid(job::RestoreFrom from, const std::string& own_class = "home", const std::function<void(job::Spec&)>& change = {},
                RegistryKind registry = RegistryKind::memory)
      : world(options(own_class, registry), false) {
    Random random(1);
    job::Spec spec = draw_spec(world.options, 0, random);
    spec.name = "pickle";
    spec.workload.work = Duration{world.options.work};
    spec.recovery.restore_from = from;
    if (change) change(spec);
    world.add_job({{"pickle"}, 0, spec});
    world.begin();
  }
  bool until(const std::function<bool()>& done, Nanos patience = k_patience) {
    for (const Nanos end = world.now + patience; world.now < end; world.run_until(world.now + 200 * k_ms))
      if (done()) return true;
    return false;
  }
  [[nodiscard]] registry::Job job() {
    const Result<registry::Job> row = world.laptops.front()->records()->job({"pickle"});
    return row ? *row : registry::Job{};
  }
  [[nodiscard]] bool runs_on(const std::string& host) {
    return job().state == job::JobState::running && job().provider.value == host;
  }
  // It runs on the lent host, has saved there, and then the host is gone.
  [[nodiscard]] bool is_saved_and_lost() {
    if (!until([this] { return runs_on("host0") && job().machine.head.value > 0; })) return false;
    world.hosts[0]->lose_power();
    return true;
  }

  World world;

 private:
  static Options options(const std::string& own_class, RegistryKind registry) {
    Options o = quiet_options();
    o.registry = registry;
    o.own_class = own_class;
    o.lent = 1;
    o.prices = {0, 9};
    return o;
  }
};

std::vector<std::string> events(Grid& grid, const std::string& kind) {
  std::vector<std::string> found;
  for (const auto& one : dynamic_cast<MemoryRecords*>(grid.world.laptops.front()->records())->events({"pickle"}))
    if (one.kind == kind) found.push_back(one.text);
  return found;
}

TEST(RestoreFrom, CannotBringALentHostsCheckpointToAPlainProcess) {
  for (const std::string own_class : {"home", "datacenter"}) {
    Grid grid(job::RestoreFrom::trusted, own_class);
    ASSERT_TRUE(grid.is_saved_and_lost());
    EXPECT_FALSE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
    EXPECT_EQ(grid.job().machine.reason, "waiting_for_provider");
    grid.world.hosts[0]->power_up();
    EXPECT_TRUE(grid.until([&] { return job::is_final(grid.job().state); })) << "a lent host may go on with it";
    EXPECT_EQ(grid.job().state, job::JobState::succeeded);
  }
}

// The job file says nothing: a machine of the user's own is protected, and the reason names the way out.
TEST(RestoreFrom, ProtectsMachinesOfTheUsersOwnByItself) {
  Grid grid(job::RestoreFrom::own_class, "home", {}, RegistryKind::sqlite);
  ASSERT_TRUE(grid.is_saved_and_lost());
  EXPECT_FALSE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
  EXPECT_EQ(grid.job().machine.reason, "waiting_for_provider");
  const std::uint64_t kept = grid.job().machine.head.value;
  EXPECT_GT(kept, 0u);
  const auto lines = dynamic_cast<registry::Registry*>(grid.world.laptops.front()->records())->explanation({"pickle"});
  ASSERT_TRUE(lines);
  EXPECT_THAT(*lines, ::testing::Contains(::testing::HasSubstr("gridctl job resume pickle --restore-from any")));
  grid.world.hosts[0]->power_up();
  EXPECT_TRUE(grid.until([&] { return job::is_final(grid.job().state); })) << "a lent host may go on with it";
  EXPECT_EQ(grid.job().state, job::JobState::succeeded);
  EXPECT_GE(grid.job().machine.head.value, kept);
}

TEST(RestoreFrom, LetsRentedMachinesGoOnByItself) {
  Grid grid(job::RestoreFrom::own_class, "datacenter");
  ASSERT_TRUE(grid.is_saved_and_lost());
  EXPECT_TRUE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
}

TEST(RestoreFrom, AnyHostGoesOnWhereTheFileDoesNotForbidIt) {
  Grid grid(job::RestoreFrom::any);
  ASSERT_TRUE(grid.is_saved_and_lost());
  EXPECT_TRUE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
}

// `interval: off` does not hold on borrowed hosts: the work is kept all the same, and the history says so once.
TEST(HostsOfOthers, TakeCheckpointsThoughTheFileSaysOff) {
  Grid grid(job::RestoreFrom::any, "home", [](job::Spec& spec) { spec.checkpoint.interval = job::CheckpointPolicy::Interval::off; });
  ASSERT_TRUE(grid.is_saved_and_lost());
  ASSERT_TRUE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
  EXPECT_GT(grid.job().machine.attempt()->resumed_from.value, 0u) << "on a host of one's own it goes on from there";
  const std::uint64_t head = grid.job().machine.head.value;
  EXPECT_THAT(events(grid, "checkpoints_compulsory"), ::testing::ElementsAre(::testing::HasSubstr("are taken on host0 as with interval: auto")));
  EXPECT_TRUE(grid.until([&] { return job::is_final(grid.job().state); }));
  EXPECT_EQ(grid.job().machine.head.value, head) << "there, off holds";
  EXPECT_EQ(events(grid, "checkpoints_compulsory").size(), 1u);
}

}  // namespace
}  // namespace gridctl::sim::trust_test
