// SPDX-License-Identifier: Apache-2.0
// Questions about all jobs at once.
#include <algorithm>

#include "registry/impl.hpp"
#include "registry/shared_price.hpp"

namespace gridctl::registry {

Result<std::map<std::string, Registry::Past>> Registry::pasts(WallTime now) {
  std::map<std::string, Past> all;
  {
    db::Statement query =
        impl_->db.prepare("SELECT job, provider, price, started_ms, ended_ms FROM attempts ORDER BY job, number");
    for (auto at = all.end();;) {
      TRY_ASSIGN(const bool row, query.next());
      if (!row) break;
      if (at == all.end() || at->first != query.view(0)) at = all.emplace_hint(all.end(), query.text(0), Past{});
      at->second.host.value = query.view(1);
      if (query.is_null(3)) continue;
      const std::int64_t end = query.is_null(4) ? now.ms : query.integer(4);
      at->second.usd +=
          query.real(2) * static_cast<double>(std::max<std::int64_t>(end - query.integer(3), 0)) / 3.6e6;
    }
  }
  db::Statement changed = impl_->db.prepare("SELECT job FROM price_changes UNION SELECT job FROM receipts "
                                                "UNION SELECT a.job FROM attempts a WHERE " GRIDCTL_NO_RECEIPT);
  for (;;) {
    TRY_ASSIGN(const bool row, changed.next());
    if (!row) break;
    const JobId id{changed.text(0)};
    if (!all.contains(id.value)) continue;  // a job that was removed
    TRY_ASSIGN(const std::vector<AttemptRecord> list, attempts(id));
    TRY_ASSIGN(const Spent spent, impl_->spent_alone(list, id, now));
    all[id.value].usd = spent.usd;
  }
  // The cost of twins is their leader's, too.
  for (auto& [id, past] : all)
    for (auto twin = all.upper_bound(id + "r"); twin != all.end() && twin->first < id + "s"; ++twin)
      past.usd += twin->second.usd;
  TRY_ASSIGN(const std::vector<JobId> bags, bags_with_workers(impl_->db, "", {}));
  for (const JobId& bag : bags) {
    TRY_ASSIGN(const SharedPrice shared, shared_by_workers(impl_->db, bag, {}, now));
    all[bag.value].usd -= shared.usd;
  }
  return all;
}

Result<std::size_t> Registry::count_unfinished() {
  db::Statement query = impl_->db.prepare("SELECT count(*) FROM jobs WHERE unfinished = 1");
  TRY_ASSIGN(const bool row, query.next());
  return row ? static_cast<std::size_t>(query.integer(0)) : 0;
}

}  // namespace gridctl::registry
