// SPDX-License-Identifier: Apache-2.0
#include "registry/forget.hpp"

#include <map>

#include "base/formatted.hpp"
#include "base/numbers.hpp"
#include "registry/impl.hpp"
#include "registry/shared_price.hpp"

namespace gridctl::registry {

namespace {

struct ForgottenRow {
  JobId id;
  std::string owner;
};

Result<std::vector<ForgottenRow>> rows_of_job(db::Database& db, const JobId& id) {
  db::Statement query = db.prepare(
      "SELECT id, owner, unfinished FROM jobs WHERE id = ?1 OR (id > ?1 || 'r' AND id < ?1 || 's') ORDER BY id");
  std::vector<ForgottenRow> rows;
  TRY(query.bind(id.value).each([&](const db::Statement& row) -> Result<void> {
    rows.push_back({{row.text(0)}, row.text(1)});
    if (row.integer(2) == 0) return {};
    return make_error(Code::busy, "job " + row.text(0) + " has not ended, or left something on a host that is still to be removed",
                      "gridctl job show " + row.text(0));
  }));
  if (rows.empty()) return make_error(Code::not_found, "no job '" + id.value.substr(0, 64) + "'", "gridctl job ls");
  return rows;
}

Result<void> check_pins(db::Database& db, const JobId& id) {
  db::Statement query = db.prepare("SELECT seq FROM checkpoints WHERE job = ? AND pinned = 1 ORDER BY seq LIMIT 1");
  TRY_ASSIGN(const bool row, query.bind(id.value).next());
  if (!row) return {};
  const std::string name = id.value + "@" + std::to_string(query.integer(0));
  return make_error(Code::usage, "checkpoint " + name + " is pinned", "gridctl checkpoint pin --off " + name);
}

// USD that the attempts of one job cost since `from`.
Result<double> cost_since(db::Database& db, const JobId& id, WallTime from, WallTime now) {
  const auto ask = [&](const std::string& sql) -> Result<double> {
    db::Statement query = db.prepare(sql + " AND a.job = ?4");
    TRY_ASSIGN(const bool row, query.bind(now.ms, from.ms, from.ms, id.value).next());
    return row && !query.is_null(0) ? query.real(0) : 0.0;
  };
  TRY_ASSIGN(const double began_with,
             ask("SELECT SUM(price * MAX(COALESCE(ended_ms, ?1) - MAX(started_ms, ?2), 0)) / 3.6e6 FROM attempts a "
                 "WHERE started_ms IS NOT NULL AND price > 0 AND (ended_ms IS NULL OR ended_ms > ?3) AND " GRIDCTL_UNBILLED));
  TRY_ASSIGN(const double billed, ask(std::string(k_billed)));
  TRY_ASSIGN(const double changed, ask(std::string(k_price_changes)));
  TRY_ASSIGN(const double paused,
             ask("SELECT SUM(" + std::string(k_unbilled_price) + " * " + std::string(k_paused_ms) + ") / 3.6e6" + std::string(k_paused_from)));
  return began_with + billed + changed - paused;
}

Result<void> keep_cost(db::Database& db, const std::string& owner, WallTime month_begins, double usd) {
  if (usd <= 0) return {};
  const std::string key = forgotten_key(month_begins) + owner;
  db::Statement query = db.prepare("SELECT value FROM meta WHERE key = ?");
  TRY_ASSIGN(const bool row, query.bind(key).next());
  if (row) usd += parse_number<double>(query.text(0)).value_or(0);
  return db.prepare("INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value")
      .bind(key, formatted("%.9f", usd))
      .run();
}

}  // namespace

Result<std::vector<JobId>> forget_job(const os::Path& state_directory, const JobId& id, WallTime month_begins,
                                      WallTime now) {
  TRY_ASSIGN(db::Database db, db::Database::open(state_directory / "state.db"));
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(db));
  TRY_ASSIGN(const std::vector<ForgottenRow> rows, rows_of_job(db, id));
  std::vector<JobId> gone;
  // Another job gets the highest revision first: revisions that went back would hide the next change from a daemon.
  TRY(db.prepare("UPDATE jobs SET spec = spec WHERE n = (SELECT max(n) FROM jobs WHERE id != ?1 AND NOT (id > ?1 || 'r' AND id < ?1 || 's'))")
          .bind(id.value)
          .run());
  TRY_ASSIGN(const SharedPrice shared, shared_by_workers(db, id, month_begins, now));
  std::map<std::string, double> usd;  // by owner
  for (const ForgottenRow& row : rows) {
    TRY(check_pins(db, row.id));
    TRY_ASSIGN(const double its, cost_since(db, row.id, month_begins, now));
    usd[row.owner] += row.id == id ? its - shared.usd : its;
    for (const std::string_view table : {"inputs", "attempts", "members", "events", "checkpoints", "price_changes", "pauses", "results"})
      TRY(db.prepare("DELETE FROM " + std::string(table) + " WHERE job = ?").bind(row.id.value).run());
    TRY(db.prepare("DELETE FROM jobs WHERE id = ?").bind(row.id.value).run());
    gone.push_back(row.id);
  }
  for (const auto& [owner, its] : usd) TRY(keep_cost(db, owner, month_begins, its));
  TRY(transaction.commit());
  return gone;
}

}  // namespace gridctl::registry
