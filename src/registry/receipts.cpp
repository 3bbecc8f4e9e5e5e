// SPDX-License-Identifier: Apache-2.0
#include "registry/receipts.hpp"

#include "base/text.hpp"
#include "registry/registry.hpp"

namespace gridctl::registry {

namespace {

constexpr std::string_view k_chain_columns = "SELECT chain, provider, host_key, rates, trouble, head, host_head, agreed_micro, told_ms, pending, agreed_gigabyte_micro, agreed_minimum_micro FROM receipt_chains ";
constexpr std::string_view k_receipt_columns =
    "SELECT chain, number, job, epoch, at_ms, asked_micro, counted_micro, agreed, line, answer FROM receipts ";

ReceiptChain read_chain(const db::Statement& row) {
  ReceiptChain out;
  out.chain = row.text(0);
  out.provider = {row.text(1)};
  out.host_key = row.text(2);
  out.rates = row.text(3);
  out.trouble = row.text(4);
  out.head = row.count(5);
  out.host_head = row.count(6);
  out.agreed = {row.integer(7), row.integer(10), row.integer(11)};
  out.told_at = {row.integer(8)};
  out.pending = split(std::string(trim(row.text(9))), ' ');
  return out;
}

ReceiptRecord read_receipt(const db::Statement& row) {
  return {row.text(0), row.count(1), {row.text(2)}, Epoch{row.count(3)}, {row.integer(4)}, row.integer(5), row.integer(6), row.integer(7) != 0, row.text(8), row.text(9)};
}

}  // namespace

Result<ReceiptStore> ReceiptStore::open(const os::Path& state_directory) {
  TRY_ASSIGN(const Registry made, Registry::open(state_directory));  // with all tables
  TRY_ASSIGN(db::Database database, db::Database::open(state_directory / "state.db"));
  return ReceiptStore(std::move(database));
}

Result<std::vector<ReceiptChain>> ReceiptStore::chains() {
  return db_.prepare(std::string(k_chain_columns) + "ORDER BY provider, chain").all(read_chain);
}

Result<std::optional<ReceiptChain>> ReceiptStore::chain(const std::string& chain) {
  db::Statement query = db_.prepare(std::string(k_chain_columns) + "WHERE chain = ?");
  TRY_ASSIGN(const bool row, query.bind(chain).next());
  return row ? std::optional(read_chain(query)) : std::nullopt;
}

Result<void> ReceiptStore::save_chain(const ReceiptChain& c) {
  return db_
      .prepare("INSERT INTO receipt_chains(chain, provider, host_key, head, host_head, rates, agreed_micro, trouble, told_ms, pending, agreed_gigabyte_micro, agreed_minimum_micro) VALUES(?,?,?,0,?,?,?,?,?,?,?,?) "
               "ON CONFLICT(chain) DO UPDATE SET provider = excluded.provider, host_key = excluded.host_key, host_head = excluded.host_head, "
               "rates = excluded.rates, trouble = excluded.trouble, told_ms = excluded.told_ms, pending = excluded.pending")
      .bind(c.chain, c.provider.value, c.host_key, c.host_head, c.rates, c.agreed.hour_micro, c.trouble, c.told_at.ms, " " + join(c.pending, " ") + " ",
            c.agreed.gigabyte_micro, c.agreed.minimum_micro)
      .run();
}

Result<void> ReceiptStore::agree(const std::string& chain, const HostName& provider, std::int64_t hour_micro, std::optional<std::int64_t> gigabyte_micro,
                                 std::optional<std::int64_t> minimum_micro) {
  return db_
      .prepare("INSERT INTO receipt_chains(chain, provider, host_key, head, host_head, rates, agreed_micro, trouble, told_ms, pending, agreed_gigabyte_micro, "
               "agreed_minimum_micro) VALUES(?1,?2,'',0,0,'',?3,'',0,'',COALESCE(?4,0),COALESCE(?5,0)) "
               "ON CONFLICT(chain) DO UPDATE SET agreed_micro = ?3, agreed_gigabyte_micro = COALESCE(?4, agreed_gigabyte_micro), "
               "agreed_minimum_micro = COALESCE(?5, agreed_minimum_micro)")
      .bind(chain, provider.value, hour_micro, gigabyte_micro, minimum_micro)
      .run();
}

Result<std::vector<ReceiptRecord>> ReceiptStore::receipts(const std::string& chain) {
  return db_.prepare(std::string(k_receipt_columns) + "WHERE ?1 = '' OR chain = ?1 ORDER BY chain, number").bind(chain).all(read_receipt);
}

Result<std::optional<std::uint64_t>> ReceiptStore::number_of(const std::string& chain, const JobId& job, Epoch epoch) {
  db::Statement query = db_.prepare("SELECT number FROM receipts WHERE chain = ? AND job = ? AND epoch = ? ORDER BY number LIMIT 1");
  TRY_ASSIGN(const bool row, query.bind(chain, job.value, epoch.value).next());
  return row ? std::optional(query.count(0)) : std::nullopt;
}

Result<std::vector<ReceiptRecord>> ReceiptStore::disputed(const JobId& job) {
  return db_.prepare(std::string(k_receipt_columns) + "WHERE job = ? AND agreed = 0 ORDER BY chain, number").bind(job.value).all(read_receipt);
}

Result<std::vector<ReceiptRecord>> ReceiptStore::receipts_after(const std::string& chain, std::uint64_t after, std::size_t most) {
  return db_.prepare(std::string(k_receipt_columns) + "WHERE chain = ? AND number > ? ORDER BY number LIMIT ?")
      .bind(chain, after, most)
      .all(read_receipt);
}

Result<void> ReceiptStore::keep(const std::string& chain, const std::vector<ReceiptRecord>& receipts) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(db_));
  for (const ReceiptRecord& r : receipts) {
    TRY(db_.prepare("INSERT INTO receipts(chain, number, job, epoch, at_ms, asked_micro, counted_micro, agreed, line, answer) "
                    "VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(chain, number) DO NOTHING")
            .bind(chain, r.number, r.job.value, r.epoch.value, r.at.ms, r.asked_micro, r.counted_micro, r.agreed, r.line, r.answer)
            .run());
    TRY(db_.prepare("UPDATE receipt_chains SET head = MAX(head, ?) WHERE chain = ?").bind(r.number, chain).run());
  }
  return transaction.commit();
}

Result<std::vector<AcceptedRates>> ReceiptStore::accepted(const std::string& chain) {
  return db_.prepare("SELECT at_ms, rates FROM accepted_rates WHERE chain = ? ORDER BY at_ms").bind(chain).all([](const db::Statement& row) {
    return AcceptedRates{{row.integer(0)}, row.text(1)};
  });
}

Result<void> ReceiptStore::accept(const std::string& chain, WallTime at, const std::string& rates) {
  return db_.prepare("INSERT INTO accepted_rates(chain, at_ms, rates) VALUES(?,?,?) ON CONFLICT(chain, at_ms) DO UPDATE SET rates = excluded.rates")
      .bind(chain, at.ms, rates)
      .run();
}

Result<std::optional<BilledAttempt>> ReceiptStore::attempt(const JobId& job, Epoch epoch) {
  db::Statement query = db_.prepare(
      "SELECT a.started_ms, a.ended_ms, a.provider, a.reason, j.spec, (SELECT min(e.at_ms) FROM events e WHERE e.job = a.job "
      "AND e.epoch = a.epoch AND e.kind = 'accepted') FROM attempts a JOIN jobs j ON j.id = a.job WHERE a.job = ? AND a.epoch = ?");
  TRY_ASSIGN(const bool row, query.bind(job.value, epoch.value).next());
  if (!row) return std::optional<BilledAttempt>{};
  BilledAttempt out{{}, {}, {}, {query.text(2)}, query.text(3), query.text(4)};
  if (!query.is_null(0)) out.started_at = WallTime{query.integer(0)};
  if (!query.is_null(1)) out.ended_at = WallTime{query.integer(1)};
  if (!query.is_null(5)) out.accepted_at = WallTime{query.integer(5)};
  return std::optional(std::move(out));
}

}  // namespace gridctl::registry
