// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "store/gc.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::gc_test {
namespace {

using namespace testing;

TEST(GcPolicy, DecidesByAgeAndLiveShare) {
  const GcPolicy policy;
  const WallTime now{1'000'000'000'000};
  const WallTime old{now.ms - 25 * 3'600'000}, young{now.ms - 23 * 3'600'000}, future{now.ms + 1000};
  EXPECT_EQ(decide({"p", 100, 0, old}, now, policy).fate, PackFate::remove);
  EXPECT_EQ(decide({"p", 100, 0, young}, now, policy).fate, PackFate::keep);
  EXPECT_EQ(decide({"p", 100, 0, future}, now, policy).fate, PackFate::keep);
  EXPECT_EQ(decide({"p", 100, 49, old}, now, policy).fate, PackFate::rewrite);
  EXPECT_EQ(decide({"p", 100, 50, old}, now, policy).fate, PackFate::keep);
  EXPECT_EQ(decide({"p", 100, 100, old}, now, policy).fate, PackFate::keep);
}

}  // namespace
}  // namespace gridctl::store::gc_test
