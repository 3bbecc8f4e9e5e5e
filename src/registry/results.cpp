// SPDX-License-Identifier: Apache-2.0
// What jobs have left in their working directories.
#include "registry/impl.hpp"

namespace gridctl::registry {

Result<void> Registry::save_results(const Results& results) {
  const Results::Left left = results.left.value_or(Results::Left{});
  db::Statement insert =
      impl_->db.prepare("INSERT OR REPLACE INTO results(job, root, files, bytes, at_ms, left_on, left_epoch, "
                        "left_files, left_bytes, left_until_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(results.job.value);
  if (results.root) insert.bind(to_hex(*results.root));
  else insert.bind_null();
  return insert.bind(results.files)
      .bind(results.bytes)
      .bind(results.at.ms)
      .bind(left.host.value)
      .bind(left.epoch.value)
      .bind(left.files)
      .bind(left.bytes)
      .bind(left.until.ms)
      .run();
}

Result<std::optional<Results>> Registry::results(const JobId& id) {
  db::Statement query =
      impl_->db.prepare("SELECT root, files, bytes, at_ms, left_on, left_epoch, left_files, left_bytes, left_until_ms "
                        "FROM results WHERE job = ?");
  query.bind(id.value);
  TRY_ASSIGN(const bool row, query.next());
  if (!row) return std::optional<Results>();
  const auto count = [&query](int column) { return static_cast<std::uint64_t>(query.integer(column)); };
  Results results;
  results.job = id;
  if (!query.is_null(0)) {
    TRY_ASSIGN(results.root, parse_digest(query.text(0)));
  }
  results.files = count(1);
  results.bytes = count(2);
  results.at = {query.integer(3)};
  if (!query.text(4).empty())
    results.left = Results::Left{{query.text(4)}, {count(5)}, count(6), count(7), {query.integer(8)}};
  return std::optional(std::move(results));
}

}  // namespace gridctl::registry
