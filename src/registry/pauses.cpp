// SPDX-License-Identifier: Apache-2.0
// When attempts were paused: their clocks of time and money stood still.
#include "registry/impl.hpp"

namespace gridctl::registry {

Result<bool> Registry::begin_pause(const JobId& id, WallTime at, std::optional<Duration> most) {
  bool begun = false;
  const auto write = [&]() -> Result<void> {
    TRY_ASSIGN(const job::State state, impl_->load_machine(id));
    if (!std::holds_alternative<job::Running>(state.phase)) return {};  // it has ended meanwhile
    const std::int64_t most_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(most.value_or(k_pause_max)).count();
    TRY(impl_->db
            .prepare("INSERT INTO pauses(job, number, from_ms, most_ms) SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS "
                     "(SELECT 1 FROM pauses WHERE job = ?1 AND number = ?2 AND until_ms IS NULL)")
            .bind(id.value, state.attempts.value, at.ms, most_ms)
            .run());
    begun = impl_->db.changes() > 0;
    if (most)
      TRY(impl_->db.prepare("UPDATE pauses SET most_ms = ? WHERE job = ? AND number = ? AND until_ms IS NULL")
              .bind(most_ms, id.value, state.attempts.value)
              .run());
    return impl_->db.prepare("UPDATE jobs SET reason = 'paused' WHERE id = ?").bind(id.value).run();
  };
  TRY(together(write));
  return begun;
}

Result<bool> Registry::end_pause(const JobId& id, WallTime at) {
  bool ended = false;
  const auto write = [&]() -> Result<void> {
    TRY_ASSIGN(const job::State state, impl_->load_machine(id));
    TRY(impl_->db.prepare("UPDATE pauses SET until_ms = MAX(?, from_ms) WHERE job = ? AND until_ms IS NULL")
            .bind(at.ms, id.value)
            .run());
    ended = impl_->db.changes() > 0;
    return impl_->db.prepare("UPDATE jobs SET reason = ? WHERE id = ? AND reason = 'paused'")
        .bind(state.reason, id.value)
        .run();
  };
  TRY(together(write));
  return ended;
}

Result<std::optional<Pause>> Registry::paused(const JobId& id) {
  db::Statement query = impl_->db.prepare(
      "SELECT p.from_ms, p.most_ms FROM pauses p JOIN attempts a ON a.job = p.job AND a.number = p.number WHERE p.job "
      "= ? AND "
      "p.until_ms IS NULL AND a.ended_ms IS NULL AND p.number = (SELECT MAX(number) FROM attempts WHERE job = p.job)");
  TRY_ASSIGN(const bool row, query.bind(id.value).next());
  if (!row) return std::optional<Pause>();
  return std::optional(Pause{{query.integer(0)}, std::chrono::milliseconds{query.integer(1)}});
}

}  // namespace gridctl::registry
