// SPDX-License-Identifier: Apache-2.0
#include "control/follow/budgets.hpp"

#include <algorithm>

#include "base/formatted.hpp"
#include "control/follow/limits.hpp"

namespace gridctl::control {

Month month_of(WallTime now) {
  using namespace std::chrono;
  const sys_days day = floor<days>(sys_time<milliseconds>{milliseconds{now.ms}});
  const year_month_day date{day};
  const year_month month{date.year(), date.month()};
  const auto begin_of = [](year_month of) {
    return WallTime{duration_cast<milliseconds>(sys_days{of / 1}.time_since_epoch()).count()};
  };
  return {begin_of(month), begin_of(month + months{1}),
          formatted("%04d-%02u", static_cast<int>(month.year()), static_cast<unsigned>(month.month()))};
}

BudgetNow judge_budget(const registry::Budget& budget, const registry::Spending& spending, WallTime now) {
  BudgetNow out{budget, spending, month_of(now)};
  const double hours_left = seconds(out.month.ends - now) / 3600;
  out.forecast = spending.usd + spending.usd_per_hour * hours_left;
  const double reserve = reserve_of(budget.usd_month, spending.usd_per_hour);
  out.used_up = spending.usd + reserve >= budget.usd_month || budget.used_up == out.month.name;
  return out;
}

Result<std::vector<BudgetNow>> budgets_now(registry::JobRecords& registry, WallTime now) {
  TRY_ASSIGN(const std::vector<registry::Budget> budgets, registry.budgets());
  std::vector<BudgetNow> list;
  for (const registry::Budget& budget : budgets) {
    TRY_ASSIGN(const registry::Spending spending, registry.spending(budget.owner, month_of(now).begins, now));
    list.push_back(judge_budget(budget, spending, now));
  }
  return list;
}

const BudgetNow* used_up_for(const std::vector<BudgetNow>& budgets, const std::string& owner) {
  const auto found = std::ranges::find_if(budgets, [&](const BudgetNow& one) {
    return one.used_up && (one.budget.owner.empty() || one.budget.owner == owner);
  });
  return found == budgets.end() ? nullptr : &*found;
}

std::string used_up_text(const BudgetNow& of) {
  return "the budget " + (of.budget.owner.empty() ? "" : "of " + of.budget.owner + " ") + "for " + of.month.name +
         formatted(", %.2f USD, is used up: %.2f USD spent, the rest is reserved for saving and stopping",
                   of.budget.usd_month, of.spending.usd);
}

}  // namespace gridctl::control
