// SPDX-License-Identifier: Apache-2.0
#include "control/follow/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::control::placement_queue_test {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Waits waits(const char* owner, std::int64_t since, int priority = 0, double load = 1) {
  return {priority, owner, {since}, load};
}

TEST(InTurn, FollowsPriorityAndThenTheTimeOfSubmission) {
  EXPECT_THAT(in_turn({}, {}), IsEmpty());
  EXPECT_THAT(in_turn({waits("", 3), waits("", 1), waits("", 9, 5), waits("", 2, -1)}, {}), ElementsAre(2, 1, 0, 3));
}

TEST(InTurn, GivesOwnersTheirShare) {
  const std::vector<Waits> both{waits("ada", 1), waits("ada", 2), waits("ada", 3), waits("bob", 4), waits("bob", 5)};
  EXPECT_THAT(in_turn(both, {}), ElementsAre(0, 3, 1, 4, 2)) << "one each";
  EXPECT_THAT(in_turn(both, {{"ada", 1.5}}), ElementsAre(3, 4, 0, 1, 2)) << "who holds less comes first";
  EXPECT_THAT(in_turn({waits("ada", 1, 0, 8), waits("ada", 2), waits("bob", 3), waits("bob", 4)}, {}),
              ElementsAre(0, 2, 3, 1))
      << "eight GPUs of one are worth more than two turns";
}

TEST(InTurn, LetsPriorityGoBeforeShares) {
  EXPECT_THAT(in_turn({waits("ada", 1, 1), waits("bob", 2)}, {{"ada", 100}}), ElementsAre(0, 1));
}

TEST(Load, CountsGpusOrElseCores) {
  job::Resources wanted;
  wanted.cpus = 4;
  EXPECT_DOUBLE_EQ(load_of(wanted), 0.5);
  wanted.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 2, 4}};
  EXPECT_DOUBLE_EQ(load_of(wanted), 2);
  job::Member member;
  member.cpus = 32;
  member.gpu_uuids = {"a"};
  EXPECT_DOUBLE_EQ(load_of(member), 4);
}

}  // namespace
}  // namespace gridctl::control::placement_queue_test
