// SPDX-License-Identifier: Apache-2.0
#include "sched/turn.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gridctl::sched::turn_test {
namespace {

std::vector<Ending> some() { return in_order({{{"c"}, {}}, {{"b"}, 20}, {{"a"}, 10}, {{"d"}, {}}}); }

TEST(Turn, ComesWhenThoseThatEndFirstHave) {
  const std::vector<Ending> running = some();
  std::string order;
  for (const Ending& one : running) order += one.job.value;
  EXPECT_EQ(order, "abcd");
  const auto wants = [&](std::set<std::string> needed) {
    return needed_ends(running, [needed = std::move(needed)](const std::set<std::string>& gone) {
      return std::includes(gone.begin(), gone.end(), needed.begin(), needed.end());
    });
  };
  EXPECT_EQ(wants({}), 0u);
  EXPECT_EQ(wants({"a"}), 1u);
  EXPECT_EQ(wants({"b"}), 2u);
  EXPECT_EQ(wants({"a", "c"}), 3u);
  EXPECT_EQ(wants({"d"}), 4u);
  EXPECT_EQ(wants({"e"}), std::nullopt);
}

TEST(Turn, IsFoundWithFewQuestionsAmongThousands) {
  std::vector<Ending> running;
  for (int i = 0; i < 4096; ++i) running.push_back({{std::to_string(i)}, i});
  for (const std::size_t needed : {0u, 1u, 700u, 4095u, 4096u}) {
    int asked = 0;
    EXPECT_EQ(needed_ends(running, [&](const auto& gone) { return ++asked, gone.size() >= needed; }), needed);
    EXPECT_LE(asked, 14);
  }
}

}  // namespace
}  // namespace gridctl::sched::turn_test
