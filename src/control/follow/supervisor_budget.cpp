// SPDX-License-Identifier: Apache-2.0
// Budgets of months: what they stop, and what must not begin.
#include <map>

#include "control/follow/following.hpp"
#include "control/follow/supervisor.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_budgets_pause = std::chrono::seconds{1};
}

void Supervisor::judge_budgets(BootTime now) {
  if (now < next_budgets_) return;
  next_budgets_ = now + k_budgets_pause;
  Result<std::vector<BudgetNow>> budgets = budgets_now(registry_, clock_.wall());
  if (!budgets) return report(budgets.error(), "while looking at budgets");
  budgets_ = *std::move(budgets);
  if (budgets_.empty()) return;
  for (const BudgetNow& one : budgets_) {
    if (!one.used_up || one.budget.used_up == one.month.name) continue;
    const Result<void> noted = registry_.note_used_up(one.budget.owner, one.month.name);
    if (!noted) report(noted.error(), "while noting that a budget is used up");
  }
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const BudgetNow* used_up = used_up_for(budgets_, job->owner);
    if (used_up == nullptr || job->state.cancel || job->state.price_per_hour() <= 0) continue;
    if (std::holds_alternative<job::Collecting>(job->state.phase)) continue;  // it has ended, and costs nothing more
    apply(job, job::LimitReached{std::string(k_limit_month), used_up_text(*used_up)});
  }
}

// What has nothing left to spend runs on hosts that cost nothing, or waits. Why, for people; empty: it may cost.
std::string Supervisor::hold_to_budget(const Following& job, job::Spec& spec) const {
  const BudgetNow* used_up = used_up_for(budgets_, job.owner);
  if (used_up == nullptr) return "";
  spec.constraints.max_price = 0;
  return used_up_text(*used_up) + "; until then only hosts that cost nothing (gridctl budget ls)";
}

}  // namespace gridctl::control
