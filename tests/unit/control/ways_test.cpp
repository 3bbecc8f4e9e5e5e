// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/reach/ways.hpp"
#include "hand_clock.hpp"
#include "registry/records.hpp"

namespace gridctl::control::ways_test {
namespace {

using namespace std::chrono_literals;

TEST(WayMemory, KeepsToAWayThatHelpedForTenMinutes) {
  registry::Provider provider;
  provider.name = {"ada"};
  provider.address = "first";
  provider.more_ways.resize(2);
  provider.more_ways[0].address = "second";
  provider.more_ways[1].address = "third";
  WayMemory memory;
  const auto order = [&](BootTime now) {
    std::string all;
    for (const registry::Way& way : memory.in_order(provider, now)) all += way.address[0];
    return all;
  };
  EXPECT_EQ(order({1}), "fst");
  memory.answered(provider.name, "third", {1});
  EXPECT_EQ(order({2}), "tfs");
  memory.answered(provider.name, "third", BootTime{1} + std::chrono::minutes{9});
  EXPECT_EQ(order(BootTime{1} + std::chrono::minutes{10}), "tfs");
  EXPECT_EQ(order(BootTime{2} + std::chrono::minutes{10}), "fst") << "the first may be back";
  memory.answered(provider.name, "first", BootTime{1} + std::chrono::minutes{1});
  EXPECT_EQ(order(BootTime{1} + std::chrono::minutes{2}), "fst");
  memory.answered(provider.name, "third", BootTime{1} + std::chrono::minutes{3});
  const registry::Way third = provider.more_ways.back();
  provider.more_ways.pop_back();
  EXPECT_EQ(order(BootTime{1} + std::chrono::minutes{4}), "fs");
  provider.more_ways.push_back(third);
  EXPECT_EQ(order(BootTime{1} + std::chrono::minutes{5}), "fst") << "it was removed meanwhile";
  EXPECT_EQ(parse_used_way(to_json(UsedWay{"me@\"ada\""}))->address, "me@\"ada\"");
  EXPECT_FALSE(parse_used_way("no"));
}

}  // namespace
}  // namespace gridctl::control::ways_test
