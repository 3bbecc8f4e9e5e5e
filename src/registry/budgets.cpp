// SPDX-License-Identifier: Apache-2.0
// Monthly budgets and spending.
#include "base/numbers.hpp"
#include "registry/impl.hpp"
#include "registry/shared_price.hpp"

namespace gridctl::registry {

Result<void> Registry::save_budget(const Budget& budget) {
  return impl_->db
      .prepare(
          "INSERT INTO budgets(owner, usd_month) VALUES(?, ?) ON CONFLICT(owner) DO UPDATE SET usd_month = "
          "excluded.usd_month, used_up = ''")
      .bind(budget.owner, budget.usd_month)
      .run();
}

Result<void> Registry::note_used_up(const std::string& owner, const std::string& month) {
  return impl_->db.prepare("UPDATE budgets SET used_up = ? WHERE owner = ?").bind(month, owner).run();
}

Result<void> Registry::remove_budget(const std::string& owner) {
  return impl_->db.prepare("DELETE FROM budgets WHERE owner = ?").bind(owner).run();
}

Result<std::vector<Budget>> Registry::budgets() {
  return impl_->db.prepare("SELECT owner, usd_month, used_up FROM budgets ORDER BY owner")
      .all([](const db::Statement& row) {
        return Budget{row.text(0), row.real(1), row.text(2)};
      });
}

Result<Spending> Registry::spending(const std::string& owner, WallTime from, WallTime now) {
  const std::string of_owner = owner.empty() ? "" : " AND a.job IN (SELECT id FROM jobs WHERE owner = ?)";
  const auto ask = [&](const std::string& sql, bool with_times) -> Result<double> {
    db::Statement query = impl_->db.prepare(sql + of_owner);
    if (with_times) query.bind(now.ms, from.ms, from.ms);
    if (!owner.empty()) query.bind(owner);
    TRY_ASSIGN(const bool row, query.next());
    return row && !query.is_null(0) ? query.real(0) : 0.0;
  };
  Spending spending;
  TRY_ASSIGN(spending.usd,
             ask("SELECT SUM(price * MAX(COALESCE(ended_ms, ?) - MAX(started_ms, ?), 0)) / 3.6e6 FROM "
                 "attempts a WHERE started_ms IS NOT NULL AND price > 0 AND (ended_ms IS NULL OR ended_ms > ?) AND " GRIDCTL_UNBILLED,
                 true));
  TRY_ASSIGN(const double billed, ask(std::string(k_billed), true));
  spending.usd += billed;
  TRY_ASSIGN(const double changed, ask(std::string(k_price_changes), true));
  spending.usd += changed;
  TRY_ASSIGN(const double paused, ask("SELECT SUM(" + std::string(k_unbilled_price) + " * " + std::string(k_paused_ms) + ") / 3.6e6" +
                                          std::string(k_paused_from), true));
  spending.usd -= paused;
  db::Statement forgotten = impl_->db.prepare(
      "SELECT value FROM meta WHERE substr(key, 1, length(?1)) = ?1 AND (?2 = '' OR key = ?1 || ?2)");
  TRY(forgotten.bind(forgotten_key(from), owner).each([&](const db::Statement& row) {
    spending.usd += parse_number<double>(row.text(0)).value_or(0);
  }));
  TRY_ASSIGN(spending.usd_per_hour,
             ask("SELECT SUM(price + COALESCE((SELECT SUM(more) FROM price_changes c WHERE c.job = a.job AND "
                 "c.number = a.number), 0)) FROM attempts a WHERE started_ms IS NOT NULL AND ended_ms IS NULL AND NOT EXISTS "
                 "(SELECT 1 FROM pauses p WHERE p.job = a.job AND p.number = a.number AND p.until_ms IS NULL)",
                 false));
  TRY_ASSIGN(const std::vector<JobId> bags, bags_with_workers(impl_->db, owner, from));
  for (const JobId& bag : bags) {
    TRY_ASSIGN(const SharedPrice shared, shared_by_workers(impl_->db, bag, from, now));
    spending.usd -= shared.usd;
    spending.usd_per_hour -= shared.usd_per_hour;
  }
  return spending;
}

}  // namespace gridctl::registry
