// SPDX-License-Identifier: Apache-2.0
#include "registry/hosts.hpp"

#include <algorithm>

#include "registry/impl.hpp"

namespace gridctl::registry {

Result<void> Registry::Impl::forget_host(const HostName& name) {
  for (const char* table : {"ways", "host_events", "host_reports", "host_spans", "listings", "figures"})
    TRY(db.prepare(std::string("DELETE FROM ") + table + " WHERE provider = ?").bind(name.value).run());
  return db.prepare("DELETE FROM links WHERE source = ?1 OR target = ?1").bind(name.value).run();
}

Result<void> Registry::together(const std::function<Result<void>()>& writes) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY(writes());
  return transaction.commit();
}

Result<void> Registry::at_once(const std::function<Result<void>()>& reads) {
  TRY(impl_->db.execute("BEGIN"));
  Result<void> done = reads();
  const Result<void> ended = impl_->db.execute("COMMIT");
  return done ? ended : done;
}

Result<void> Registry::add_host_event(const HostEvent& event) {
  db::Database& db = impl_->db;
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(db));
  TRY(db.prepare("INSERT INTO host_events(provider, at_ms, kind, text) VALUES(?,?,?,?)")
          .bind(event.provider.value, event.at.ms, event.kind, event.text)
          .run());
  TRY(db.prepare("DELETE FROM host_events WHERE provider = ?1 AND id <= (SELECT id FROM host_events "
                 "WHERE provider = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)")
          .bind(event.provider.value, k_host_events_max)
          .run());
  return transaction.commit();
}

Result<std::vector<HostEvent>> Registry::host_events(const HostName& name, std::size_t limit) {
  db::Statement query = impl_->db.prepare(
      "SELECT id, provider, at_ms, kind, text FROM host_events WHERE ?1 = '' OR provider = ?1 ORDER BY id DESC LIMIT "
      "?2");
  query.bind(name.value, limit == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(limit));
  TRY_ASSIGN(std::vector<HostEvent> found, query.all([](const db::Statement& row) {
    return HostEvent{row.integer(0), {row.text(1)}, {row.integer(2)}, row.text(3), row.text(4)};
  }));
  std::ranges::reverse(found);
  return found;
}

Result<void> Registry::save_host_report(const HostReport& report) {
  if (report.body.size() > k_host_report_max)
    return make_error(Code::protocol_violation, "the " + report.kind + " report of '" + report.provider.value +
                                                    "' has " + std::to_string(report.body.size()) + " bytes; at most " +
                                                    std::to_string(k_host_report_max) + " are kept");
  return impl_->db.prepare("INSERT OR REPLACE INTO host_reports(provider, kind, at_ms, body) VALUES(?,?,?,?)")
      .bind(report.provider.value, report.kind, report.at.ms, report.body)
      .run();
}

Result<std::optional<HostReport>> Registry::host_report(const HostName& name, const std::string& kind) {
  db::Statement query = impl_->db.prepare("SELECT at_ms, body FROM host_reports WHERE provider = ? AND kind = ?");
  TRY_ASSIGN(const bool row, query.bind(name.value, kind).next());
  if (!row) return std::optional<HostReport>{};
  return std::optional{HostReport{name, kind, {query.integer(0)}, query.text(1)}};
}

Result<std::vector<HostReport>> Registry::host_reports(const std::string& kind) {
  db::Statement query =
      impl_->db.prepare("SELECT provider, at_ms, body FROM host_reports WHERE kind = ? ORDER BY provider");
  return query.bind(kind).all([&](const db::Statement& row) {
    return HostReport{{row.text(0)}, kind, {row.integer(1)}, row.text(2)};
  });
}

Result<void> Registry::save_host_span(const HostSpan& span) {
  db::Database& db = impl_->db;
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(db));
  TRY(db.prepare("INSERT OR REPLACE INTO host_spans(provider, unit, began_ms, ended_ms, cause) VALUES(?,?,?,?,?)")
          .bind(span.provider.value, span.unit, span.began_at.ms, span.ended_at.ms, span.cause)
          .run());
  TRY(db.prepare("DELETE FROM host_spans WHERE provider = ?1 AND unit = ?2 AND began_ms <= (SELECT began_ms FROM "
                 "host_spans WHERE provider = ?1 AND unit = ?2 ORDER BY began_ms DESC LIMIT 1 OFFSET ?3)")
          .bind(span.provider.value, span.unit, k_host_spans_max)
          .run());
  return transaction.commit();
}

Result<std::vector<HostSpan>> Registry::host_spans(const HostName& name) {
  db::Statement query = impl_->db.prepare(
      "SELECT provider, unit, began_ms, ended_ms, cause FROM host_spans WHERE provider = ? ORDER BY began_ms, unit");
  return query.bind(name.value).all([](const db::Statement& row) {
    return HostSpan{{row.text(0)}, row.text(1), {row.integer(2)}, {row.integer(3)}, row.text(4)};
  });
}

Result<void> Registry::save_link(const HostLink& link) {
  return impl_->db
      .prepare(
          "INSERT INTO links(source, target, at_ms, rtt_us, bits_per_second) VALUES(?,?,?,?,?) "
          "ON CONFLICT DO UPDATE SET at_ms = excluded.at_ms, rtt_us = coalesce(excluded.rtt_us, rtt_us), "
          "bits_per_second = coalesce(excluded.bits_per_second, bits_per_second)")
      .bind(link.source, link.target, link.at.ms, link.rtt_us, link.bits_per_second)
      .run();
}

Result<std::vector<HostLink>> Registry::links() {
  db::Statement query =
      impl_->db.prepare("SELECT source, target, at_ms, rtt_us, bits_per_second FROM links ORDER BY source, target");
  return query.all([](const db::Statement& row) {
    HostLink link{row.text(0), row.text(1), {row.integer(2)}, {}, {}};
    if (!row.is_null(3)) link.rtt_us = row.integer(3);
    if (!row.is_null(4)) link.bits_per_second = row.real(4);
    return link;
  });
}

}  // namespace gridctl::registry
