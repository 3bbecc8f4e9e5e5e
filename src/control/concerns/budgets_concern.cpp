// SPDX-License-Identifier: Apache-2.0
// Budgets of months: what they stop, and what must not begin.
#include "control/concerns/table.hpp"
#include "control/follow/budgets.hpp"

namespace gridctl::control {

namespace {

class BudgetsConcern : public Concern {
 public:
  explicit BudgetsConcern(const Rooms& rooms) : rooms_(rooms) {}

  void tick(BootTime) override {
    Result<std::vector<BudgetNow>> budgets = budgets_now(rooms_.world.records, rooms_.world.clock.wall());
    if (!budgets) return report(budgets.error(), "while looking at budgets");
    budgets_ = *std::move(budgets);
    if (budgets_.empty()) return;
    for (const BudgetNow& one : budgets_) {
      if (!one.used_up || one.budget.used_up == one.month.name) continue;
      const Result<void> noted = rooms_.world.records.note_used_up(one.budget.owner, one.month.name);
      if (!noted) report(noted.error(), "while noting that a budget is used up");
    }
    rooms_.book.each([&](TrackedJob& job) {
      const BudgetNow* used_up = used_up_for(budgets_, job.spec().owner);
      if (used_up == nullptr || job.state().cancel || job.state().price_per_hour() <= 0) return;
      if (job.in<job::Collecting>() != nullptr) return;  // it has ended, and costs nothing more
      rooms_.book.apply(job.id(), job::LimitReached{std::string(k_limit_month), used_up_text(*used_up)});
    });
  }

  // What has nothing left to spend runs on hosts that cost nothing, or waits.
  void shape(const TrackedJob& asking, Question& question) const override {
    const BudgetNow* used_up = used_up_for(budgets_, asking.spec().owner);
    if (used_up == nullptr) return;
    question.spec.constraints.max_price = 0;
    question.held = used_up_text(*used_up) + "; until then only hosts that cost nothing (gridctl budget ls)";
  }

 private:
  const Rooms rooms_;
  std::vector<BudgetNow> budgets_;
};

}  // namespace

std::unique_ptr<Concern> make_budgets(const Rooms& rooms) { return std::make_unique<BudgetsConcern>(rooms); }

}  // namespace gridctl::control
