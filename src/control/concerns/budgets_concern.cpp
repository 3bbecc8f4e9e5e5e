// SPDX-License-Identifier: Apache-2.0
// Enforces monthly budgets: stops jobs that exceed them and holds jobs that must not start.
#include "control/concerns/table.hpp"
#include "control/follow/budgets.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_slice_slack = std::chrono::seconds{2};  // hosts and we do not count from the same instant

class BudgetsConcern : public Concern {
 public:
  explicit BudgetsConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime) override {
    Result<std::vector<BudgetNow>> budgets = budgets_now(controls_.world.records, controls_.world.clock.wall());
    if (!budgets) return report(budgets.error(), "while looking at budgets");
    budgets_ = *std::move(budgets);
    if (budgets_.empty()) return;
    for (const BudgetNow& one : budgets_)
      if (one.used_up && one.budget.used_up != one.month.name) note_used_up(one);
    controls_.book.each_placed([&](TrackedJob& job) {
      const BudgetNow* used_up = used_up_for(budgets_, job.spec().owner);
      if (used_up == nullptr || job.state().cancel || job.state().price_per_hour() <= 0) return;
      if (job.in<job::Collecting>() != nullptr) return;  // it has ended, and costs nothing more
      if (!controls_.attempts.is_counted(job)) return;
      controls_.book.apply(job.id(), job::LimitReached{std::string(k_limit_month), used_up_text(*used_up)});
    });
  }

  // The host ended the job because its slice was used up. Checks whether the complete budget is used up.
  void changed(const TrackedJob& job, const job::State& before) override {
    const auto* ended = job.in<job::Collecting>();
    if (ended == nullptr || ended->end.kind != job::EndKind::limit || ended->end.detail != k_limit_month) return;
    if (std::holds_alternative<job::Collecting>(before.phase)) return;
    controls_.world.run.post([this, id = job.id(), owner = job.spec().owner, price = job.state().price_per_hour()] {
      const WallTime now = controls_.world.clock.wall();
      const Result<std::vector<BudgetNow>> budgets = budgets_now(controls_.world.records, now);
      if (!budgets) return report(budgets.error(), "while looking at budgets");
      std::vector<BudgetNow> with_it;
      for (const BudgetNow& one : *budgets) {
        registry::Spending spending = one.spending;
        spending.usd += price * seconds(k_slice_slack) / 3600;
        spending.usd_per_hour += price;
        with_it.push_back(judge_budget(one.budget, spending, now));
      }
      const BudgetNow* used_up = used_up_for(with_it, owner);
      if (used_up == nullptr || controls_.book.find(id) == nullptr) return;
      note_used_up(*used_up);
      controls_.book.apply(id, job::LimitReached{std::string(k_limit_month), used_up_text(*used_up)});
      // Another job may be placed before the next look.
      if (Result<std::vector<BudgetNow>> noted_too = budgets_now(controls_.world.records, now)) budgets_ = *std::move(noted_too);
    });
  }

  // A job without money left runs only on free hosts, or waits.
  void shape(const TrackedJob& asking, Question& question) const override {
    const BudgetNow* used_up = used_up_for(budgets_, asking.spec().owner);
    if (used_up == nullptr) return;
    question.spec.constraints.max_price = 0;
    question.held = used_up_text(*used_up) + "; until then, only free hosts are used (gridctl budget ls)";
  }

 private:
  void note_used_up(const BudgetNow& one) {
    report(controls_.world.records.note_used_up(one.budget.owner, one.month.name),
           "while noting that a budget is used up");
  }

  const Controls controls_;
  std::vector<BudgetNow> budgets_;
};

}  // namespace

std::unique_ptr<Concern> make_budgets(const Controls& controls) { return std::make_unique<BudgetsConcern>(controls); }

}  // namespace gridctl::control
