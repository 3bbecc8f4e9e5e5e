// SPDX-License-Identifier: Apache-2.0
// The files that jobs have left in their working directories.
#include "registry/impl.hpp"

namespace gridctl::registry {

Result<void> Registry::save_results(const Results& results) {
  const Results::Left left = results.left.value_or(Results::Left{});
  db::Statement insert =
      impl_->db.prepare("INSERT OR REPLACE INTO results(job, root, files, bytes, at_ms, left_on, left_epoch, "
                        "left_files, left_bytes, left_until_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const auto root = results.root ? std::optional{to_hex(*results.root)} : std::nullopt;
  return insert
      .bind(results.job.value, root, results.files, results.bytes, results.at.ms, left.host.value, left.epoch.value,
            left.files, left.bytes, left.until.ms)
      .run();
}

Result<std::optional<Results>> Registry::results(const JobId& id) {
  db::Statement query =
      impl_->db.prepare("SELECT root, files, bytes, at_ms, left_on, left_epoch, left_files, left_bytes, left_until_ms "
                        "FROM results WHERE job = ?");
  query.bind(id.value);
  TRY_ASSIGN(const bool row, query.next());
  if (!row) return std::optional<Results>();
  Results results;
  results.job = id;
  if (!query.is_null(0)) {
    TRY_ASSIGN(results.root, parse_digest(query.text(0)));
  }
  results.files = query.count(1);
  results.bytes = query.count(2);
  results.at = {query.integer(3)};
  if (!query.text(4).empty())
    results.left = Results::Left{{query.text(4)}, {query.count(5)}, query.count(6), query.count(7), {query.integer(8)}};
  return std::optional(std::move(results));
}

}  // namespace gridctl::registry
