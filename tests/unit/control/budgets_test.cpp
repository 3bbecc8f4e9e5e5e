// SPDX-License-Identifier: Apache-2.0
#include "control/follow/budgets.hpp"

#include <gtest/gtest.h>

namespace gridctl::control::budgets_test {
namespace {

WallTime at(const char* text) { return *parse_rfc3339(text); }

TEST(Month, IsThatOfUtc) {
  const Month month = month_of(at("2026-12-31T23:59:59Z"));
  EXPECT_EQ(month.name, "2026-12");
  EXPECT_EQ(format_rfc3339(month.begins), "2026-12-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(month.ends), "2027-01-01T00:00:00.000Z");
  EXPECT_EQ(month_of(at("2027-01-01T00:00:00Z")).name, "2027-01");
  EXPECT_EQ(month_of(at("2028-02-29T12:00:00Z")).ends, at("2028-03-01T00:00:00Z"));
}

TEST(MonthBudget, KeepsWhatSavingAndStoppingCost) {
  const WallTime now = at("2026-11-30T00:00:00Z");
  EXPECT_FALSE(judge_budget({"", 100}, {98.9, 120}, now).used_up);
  EXPECT_TRUE(judge_budget({"", 100}, {99.1, 120}, now).used_up) << "30 s at 120 USD an hour are one";
  EXPECT_FALSE(judge_budget({"", 100}, {89, 1e6}, now).used_up) << "at most a tenth";
  EXPECT_TRUE(judge_budget({"", 100}, {100, 0}, now).used_up);
  EXPECT_TRUE(judge_budget({"", 0}, {0, 0}, now).used_up) << "nothing may cost anything";
  EXPECT_TRUE(judge_budget({"", 100, "2026-11"}, {99, 0}, now).used_up) << "the rest was for saving";
  EXPECT_FALSE(judge_budget({"", 100, "2026-10"}, {99, 0}, now).used_up);
  EXPECT_DOUBLE_EQ(judge_budget({"", 100}, {10, 2}, now).forecast, 10 + 24 * 2);
}

TEST(MonthBudget, OfAllHoldsForEveryOwnerAndOfOneForItsOwn) {
  const WallTime now = at("2026-11-30T00:00:00Z");
  std::vector<BudgetNow> budgets{judge_budget({"", 100}, {5, 0}, now), judge_budget({"vision", 10}, {10, 0}, now)};
  EXPECT_EQ(used_up_for(budgets, ""), nullptr);
  EXPECT_EQ(used_up_for(budgets, "speech"), nullptr);
  ASSERT_NE(used_up_for(budgets, "vision"), nullptr);
  EXPECT_EQ(used_up_text(*used_up_for(budgets, "vision")),
            "the budget of vision for 2026-11, 10.00 USD, is used up: 10.00 USD spent, the rest is reserved for saving and "
            "stopping");
  budgets[0] = judge_budget({"", 100}, {101, 0}, now);
  ASSERT_NE(used_up_for(budgets, "speech"), nullptr);
  EXPECT_TRUE(used_up_text(*used_up_for(budgets, "speech")).starts_with("the budget for 2026-11, 100.00 USD"));
}

}  // namespace
}  // namespace gridctl::control::budgets_test
