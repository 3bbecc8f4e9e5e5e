// SPDX-License-Identifier: Apache-2.0
// Hosts that are reached at several addresses, under the shipped controller.
#include <gtest/gtest.h>

#include <string>

#include "control/reach/ways.hpp"
#include "grid.hpp"
#include "network.hpp"

namespace gridctl::sim::ways_test {
namespace {

// A job runs on a host with two addresses, and was saved there.
class Ways : public ::testing::Test {
 protected:
  void SetUp() override {
    grid.add("long");
    ASSERT_TRUE(grid.until([&] { return grid.runs("long") && grid.job("long").machine.head.value > 0; }));
    name = grid.host("long");
    grid.laptop().user_reaches(SimNetwork::host_of({name}), {first(), second()});
    ASSERT_TRUE(grid.until([&] { return in_use() == first(); }));
  }
  [[nodiscard]] std::string first() const { return "me@" + name; }
  [[nodiscard]] std::string second() const { return "me@lan." + name; }
  [[nodiscard]] std::string in_use() {
    const auto report = grid.laptop().records()->host_report({name}, control::k_way_report);
    const auto used = report && *report ? control::parse_used_way((*report)->body) : std::nullopt;
    return used ? used->address : "";
  }
  [[nodiscard]] std::size_t attempts() { return grid.laptop().records()->attempts({"long"})->size(); }

  Grid grid{quiet_options()};
  std::string name;
};

TEST_F(Ways, AJobGoesOnWithoutAMoveWhenTheFirstAddressIsCut) {
  grid.world.ways[first()] = WayFault::cut;
  ASSERT_TRUE(grid.until([&] { return in_use() == second(); }));
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::succeeded);
  EXPECT_EQ(attempts(), 1u);
  EXPECT_FALSE(grid.told("long", "move_requested"));
}

TEST_F(Ways, AnotherMachineAtTheFirstAddressIsPassedOver) {
  grid.world.ways[first()] = WayFault::another_machine;
  ASSERT_TRUE(grid.until([&] { return in_use() == second(); }));
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::succeeded);
  EXPECT_EQ(attempts(), 1u);
}

TEST_F(Ways, TheJobMovesWhenNoAddressAnswers) {
  const std::string left = name;
  grid.world.ways[first()] = grid.world.ways[second()] = WayFault::cut;
  ASSERT_TRUE(grid.until([&] { return grid.runs("long") && grid.host("long") != left; }));
  grid.world.ways.clear();
  ASSERT_TRUE(grid.until([&] { return grid.ended("long"); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::succeeded);
  EXPECT_EQ(attempts(), 2u);
}

// A host that was reinstalled in the middle of a job is another one, until its user says that it is the same.
TEST(Identity, AHostWithAnotherOneIsLeftAloneUntilItIsAccepted) {
  Grid grid(quiet_options());
  grid.add("long");
  ASSERT_TRUE(grid.until([&] { return grid.runs("long") && grid.job("long").machine.head.value > 0; }));
  const std::string left = grid.host("long");
  const int number = SimNetwork::host_of({left});
  Host& host = *grid.world.hosts[static_cast<std::size_t>(number)];
  host.reinstall();
  host.kill_agents();
  ASSERT_TRUE(grid.until([&] { return grid.runs("long") && grid.host("long") != left; }));
  EXPECT_FALSE(host.is_unused()) << "nobody has spoken to it since";
  grid.laptop().user_accepts(number);
  ASSERT_TRUE(grid.until([&] { return grid.ended("long") && host.is_unused(); }));
  EXPECT_EQ(grid.job("long").state, job::JobState::succeeded);
  EXPECT_EQ(grid.laptop().records()->attempts({"long"})->size(), 2u);
}

}  // namespace
}  // namespace gridctl::sim::ways_test
