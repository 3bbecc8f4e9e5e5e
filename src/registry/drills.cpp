// SPDX-License-Identifier: Apache-2.0
#include "registry/impl.hpp"

namespace gridctl::registry {

Result<void> Registry::save_drill(const Drill& drill) {
  std::optional<std::int64_t> took, lost;
  if (drill.took) took = std::chrono::duration_cast<std::chrono::milliseconds>(*drill.took).count();
  if (drill.steps_lost) lost = static_cast<std::int64_t>(*drill.steps_lost);
  return impl_->db
      .prepare(
          "INSERT OR REPLACE INTO drills(name, fingerprint, job, at_ms, verdict, summary, took_ms, steps_lost) "
          "VALUES(?,?,?,?,?,?,?,?)")
      .bind(drill.name, drill.fingerprint, drill.id.value, drill.at.ms, drill.verdict, drill.summary, took, lost)
      .run();
}

Result<std::optional<Drill>> Registry::drill(const std::string& name) {
  db::Statement query = impl_->db.prepare(
      "SELECT name, fingerprint, job, at_ms, verdict, summary, took_ms, steps_lost FROM drills WHERE name = ?");
  TRY_ASSIGN(const bool row, query.bind(name).next());
  if (!row) return std::optional<Drill>{};
  Drill drill{query.text(0), query.text(1), {query.text(2)}, {query.integer(3)}, query.text(4), query.text(5), {}, {}};
  if (!query.is_null(6)) drill.took = std::chrono::milliseconds{query.integer(6)};
  if (!query.is_null(7)) drill.steps_lost = static_cast<std::uint64_t>(query.integer(7));
  return std::optional{drill};
}

}  // namespace gridctl::registry
