// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "agent/bag_queue.hpp"

namespace gridctl::agent::bag_queue_test {
namespace {

using wire::OrderKind;
using wire::TaskEnd;

wire::BagOrder granted(std::uint64_t first, std::uint64_t count, std::vector<std::string> items = {}) {
  return {OrderKind::grant, first, count, std::move(items), 0};
}

std::vector<std::uint64_t> rest_of(BagQueue& queue) {
  std::vector<std::uint64_t> indices;
  while (const auto task = queue.next()) indices.push_back(task->index);
  return indices;
}

TEST(BagQueue, GivesTasksInTheOrderOfTheirGrantsWithTheirItems) {
  BagQueue queue;
  EXPECT_TRUE(queue.take(granted(5, 2, {"a", "b"})).empty());
  EXPECT_TRUE(queue.take(granted(0, 1)).empty());
  EXPECT_EQ(queue.size(), 3u);
  const auto first = queue.next(), second = queue.next(), third = queue.next();
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->index, 5u);
  EXPECT_EQ(second->item, "b");
  EXPECT_EQ(third->item, std::nullopt);
  EXPECT_EQ(third->order, 1u);
  EXPECT_FALSE(queue.next());
}

TEST(BagQueue, TakesBackWhatIsRevokedAndKeepsTheItemsOfTheRest) {
  BagQueue queue;
  (void)queue.take(granted(10, 5, {"a", "b", "c", "d", "e"}));
  (void)queue.take(granted(100, 10));
  const auto back = queue.take({OrderKind::revoke, 11, 3, {}, 0});
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].index, 11u);
  EXPECT_EQ(back[0].count, 3u);
  EXPECT_EQ(back[0].order, 0u);
  EXPECT_EQ(back[0].end, TaskEnd::revoked);
  EXPECT_EQ(queue.next()->item, "a");
  EXPECT_EQ(queue.next()->item, "e");
  EXPECT_EQ(queue.size(), 10u);
  EXPECT_TRUE(queue.take({OrderKind::revoke, 11, 3, {}, 0}).empty());
  EXPECT_EQ(queue.take_back().size(), 1u);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(BagQueue, RunsAnIndexAgainThatIsGrantedAgain) {
  BagQueue queue;
  for (const wire::BagOrder& order : {granted(3, 2), wire::BagOrder{OrderKind::revoke, 0, 9, {}, 0}, granted(4, 1)})
    (void)queue.take(order);
  EXPECT_EQ(rest_of(queue), std::vector<std::uint64_t>{4});
}

TEST(BagQueue, GivesBackWhatIsGrantedBehindTheFinish) {
  BagQueue queue;
  (void)queue.take({OrderKind::finish, 0, 0, {}, 7});
  EXPECT_EQ(queue.take(granted(3, 2)).size(), 1u);
  EXPECT_TRUE(queue.finished());
  EXPECT_EQ(queue.exit_code(), 7);
}

}  // namespace
}  // namespace gridctl::agent::bag_queue_test
