// SPDX-License-Identifier: Apache-2.0

#include "base/inventory.hpp"

namespace gridctl::inventory_gaps_test {
namespace {

TEST(Gaps, OfAnEmptyInventoryAreAllItsAttributes) {
  Inventory inventory;
  EXPECT_EQ(unexplained(inventory).size(), 35u);
  inventory.gpus.emplace_back();
  const std::vector<std::string> names = unexplained(inventory);
  EXPECT_EQ(names.size(), 34u + 29u) << "there is a GPU, of which nothing is known";
  for (const char* name :
       {"cpus", "memory_bytes", "engines", "gpus[0].name", "gpus[0].memory_bytes", "gpus[0].fabric.active"})
    EXPECT_THAT(names, ::testing::Contains(name));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("gpus")));
}

TEST(Gaps, GoWhereTheirAttributeIsKnown) {
  Inventory inventory;
  inventory.kernel = "6.1";
  inventory.gpus.emplace_back().name = "X";
  add_gap(inventory.gaps, "kernel", GapReason::denied);
  add_gap(inventory.gpus[0].gaps, "name", GapReason::denied);
  add_gap(inventory.gaps, "os", GapReason::denied, "first");
  add_gap(inventory.gaps, "os", GapReason::no_tool, "second");
  explain_rest(inventory, GapReason::not_reported, "x");
  EXPECT_EQ(find_gap(inventory.gaps, "kernel"), nullptr);
  EXPECT_EQ(find_gap(inventory.gpus[0].gaps, "name"), nullptr);
  EXPECT_EQ(find_gap(inventory.gaps, "os")->detail, "first");
  EXPECT_EQ(find_gap(inventory.gpus[0].gaps, "uuid")->reason, GapReason::not_reported);
  EXPECT_TRUE(unexplained(inventory).empty());
}

}  // namespace
}  // namespace gridctl::inventory_gaps_test
