// SPDX-License-Identifier: Apache-2.0
// Red team: a lent host that puts code into a checkpoint, so that it runs on a machine of the user's own.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "host.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim::trust_test {
namespace {

constexpr Nanos k_patience = 60 * k_min;

// The first host is lent and costs nothing, so that it is chosen; the second is the user's own.
class Grid {
 public:
  explicit Grid(bool only_trusted) : world(options(), false) {
    Random random(1);
    job::Spec spec = draw_spec(world.options, 0, random);
    spec.name = "pickle";
    spec.workload.work = Duration{world.options.work};
    spec.recovery.only_trusted = only_trusted;
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
  static Options options() {
    Options o = quiet_options();
    o.lent = 1;
    o.prices = {0, 9};
    return o;
  }
};

TEST(RestoreFrom, CannotBringALentHostsCheckpointToAPlainProcess) {
  Grid grid(true);
  ASSERT_TRUE(grid.is_saved_and_lost());
  EXPECT_FALSE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
  EXPECT_EQ(grid.job().machine.reason, "waiting_for_provider");
  grid.world.hosts[0]->power_up();
  EXPECT_TRUE(grid.until([&] { return job::is_final(grid.job().state); })) << "a lent host may go on with it";
  EXPECT_EQ(grid.job().state, job::JobState::succeeded);
}

TEST(RestoreFrom, AnyHostGoesOnWhereTheFileDoesNotForbidIt) {
  Grid grid(false);
  ASSERT_TRUE(grid.is_saved_and_lost());
  EXPECT_TRUE(grid.until([&] { return grid.runs_on("host1"); }, 10 * k_min));
}

}  // namespace
}  // namespace gridctl::sim::trust_test
