// SPDX-License-Identifier: Apache-2.0
// Computes budgets of calendar months (UTC), for all jobs or for those of one owner.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "registry/job_records.hpp"

namespace gridctl::control {

inline constexpr std::string_view k_limit_month = "month_budget";  // why a job was stopped

struct Month {
  WallTime begins, ends;
  std::string name;  // "2026-11"
};
[[nodiscard]] Month month_of(WallTime now);

struct BudgetNow {
  registry::Budget budget;
  registry::Spending spending;  // of this month until now
  Month month;
  double forecast = 0;   // USD at the month's end, if what runs now goes on
  bool used_up = false;  // but for what it costs to save and stop, at most a tenth of it
};
[[nodiscard]] BudgetNow judge_budget(const registry::Budget& budget, const registry::Spending& spending, WallTime now);
[[nodiscard]] Result<std::vector<BudgetNow>> budgets_now(registry::JobRecords& registry, WallTime now);
// Returns the budget that stops jobs of this owner from costing more; nullptr if none does.
[[nodiscard]] const BudgetNow* used_up_for(const std::vector<BudgetNow>& budgets, const std::string& owner);
// "the budget of ada for 2026-11, 200.00 USD, is used up: 199.80 USD spent, …"
[[nodiscard]] std::string used_up_text(const BudgetNow& budget);

}  // namespace gridctl::control
