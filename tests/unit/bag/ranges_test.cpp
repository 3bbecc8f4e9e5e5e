// SPDX-License-Identifier: Apache-2.0
#include "bag/ranges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace gridctl::bag::ranges_test {
namespace {

std::set<Index> set_of(const std::vector<Range>& ranges) {
  std::set<Index> out;
  for (const Range& range : ranges)
    for (Index index = range.first; index < range.end(); ++index) EXPECT_TRUE(out.insert(index).second);
  return out;
}

TEST(Ranges, HoldWhatASetWouldHold) {
  std::mt19937 draw(4711);
  for (int world = 0; world < 50; ++world) {
    Ranges ranges;
    std::set<Index> set;
    for (int step = 0; step < 200; ++step) {
      const Range range{draw() % 60, draw() % 12};
      const bool add = draw() % 2 == 0;
      if (add) ranges.add(range);
      else ranges.erase(range);
      for (Index index = range.first; index < range.end(); ++index) {
        if (add) set.insert(index);
        else set.erase(index);
      }
      ASSERT_EQ(set_of(ranges.list()), set);
      ASSERT_EQ(ranges.count(), set.size());
      const Index probe = draw() % 80;
      ASSERT_EQ(ranges.contains(probe), set.contains(probe));
      const std::uint64_t few = draw() % 10;
      ASSERT_EQ(set_of(ranges.head(few)).size(), std::min<std::uint64_t>(few, set.size()));
      ASSERT_EQ(set_of(ranges.tail(few)).size(), std::min<std::uint64_t>(few, set.size()));
    }
  }
}

TEST(Ranges, ManyIndicesInARowAreOneEntry) {
  Ranges ranges;
  for (Index index = 0; index < 100'000; ++index) ranges.add({index, 1});
  EXPECT_EQ(ranges.list(), (std::vector<Range>{{0, 100'000}}));
}

TEST(Ranges, AreWrittenAndReadAsPeopleWriteThem) {
  EXPECT_EQ(to_text({{17, 1}, {20, 11}}), "17,20-30");
  EXPECT_EQ(to_text({{1, 1}, {3, 1}, {5, 1}}, 2), "1,3,…");
  ASSERT_TRUE(parse_ranges("17,20-30", 31));
  EXPECT_EQ(parse_ranges("17,20-30", 31)->list(), (std::vector<Range>{{17, 1}, {20, 11}}));
  for (const char* wrong : {"", "x", "1-", "3-1", "1,", "1;2", "-1", "20-31", "99999999999999999999"})
    EXPECT_FALSE(parse_ranges(wrong, 31)) << wrong;
}

}  // namespace
}  // namespace gridctl::bag::ranges_test
