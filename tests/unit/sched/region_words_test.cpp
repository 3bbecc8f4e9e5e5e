// SPDX-License-Identifier: Apache-2.0
#include "sched/geo/region_words.hpp"

#include <gtest/gtest.h>

namespace gridctl::sched::region_words_test {
namespace {

TEST(RegionCode, IsFoundForACountryHoweverItIsSpelled) {
  for (const char* name : {"South Korea", "south_korea", "SOUTH-KOREA", " south korea "})
    EXPECT_EQ(region_code(name), "KR") << name;
  EXPECT_EQ(region_code("united states-of_america"), "US");
}

TEST(RegionCode, IsFoundForASlipInALongWordOnly) {
  EXPECT_EQ(region_code("germny"), "DE");
  EXPECT_EQ(region_code("pery"), "") << "peru, or anything else";
  EXPECT_EQ(region_code("atlantis"), "");
  EXPECT_EQ(region_code(""), "");
}

}  // namespace
}  // namespace gridctl::sched::region_words_test
