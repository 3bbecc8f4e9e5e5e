// SPDX-License-Identifier: Apache-2.0
// Receipts of lent hosts and what has been accepted there. Their form is none of this room's (lend/receipt.hpp). Over a
// connection of its own, so that a daemon notices what it writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "db/database.hpp"
#include "os/files.hpp"

namespace gridctl::registry {

// Limits what is accepted of a host, in millionths of a dollar. Nothing is accepted that the user has not named.
struct AgreedPrice {
  std::int64_t hour_micro = 0;  // of the whole host
  std::int64_t gigabyte_micro = 0;
  std::int64_t minimum_micro = 0;  // for an attempt
};

struct ReceiptChain {
  std::string chain;  // the id of the invitation
  HostName provider;
  std::string host_key, rates, trouble;  // empty: not known, none
  std::uint64_t head = 0, host_head = 0;
  WallTime told_at;  // when the host was asked last
  std::vector<std::string> pending;  // attempts, as JOB.EPOCH, for which it told to have no receipt yet
  AgreedPrice agreed;
};

struct ReceiptRecord {
  std::string chain;
  std::uint64_t number = 0;
  JobId job;
  Epoch epoch;
  WallTime at;
  std::int64_t asked_micro = 0, counted_micro = 0;
  bool agreed = false;
  std::string line, answer;
};

struct AcceptedRates {
  WallTime at;
  std::string rates;
};

// An attempt as far as receipts are judged by it.
struct BilledAttempt {
  std::optional<WallTime> accepted_at, started_at, ended_at;  // by its host; its `run`, after the setup
  HostName provider;
  std::string reason;  // of its end
  std::string spec;    // of its job, as JSON
};

class ReceiptStore {
 public:
  [[nodiscard]] static Result<ReceiptStore> open(const os::Path& state_directory);

  [[nodiscard]] Result<std::vector<ReceiptChain>> chains();
  [[nodiscard]] Result<std::optional<ReceiptChain>> chain(const std::string& chain);
  // Writes a chain. If it is there already, its head and what was agreed stay: keep() and agree() write those.
  [[nodiscard]] Result<void> save_chain(const ReceiptChain& chain);
  // Writes what the user agreed to pay; the parts without a value stay as they were.
  [[nodiscard]] Result<void> agree(const std::string& chain, const HostName& provider, std::int64_t hour_micro, std::optional<std::int64_t> gigabyte_micro,
                                   std::optional<std::int64_t> minimum_micro);
  // All of one chain, or of all: oldest first.
  [[nodiscard]] Result<std::vector<ReceiptRecord>> receipts(const std::string& chain = {});
  // Returns the number of the first receipt for an attempt; nullopt: there is none.
  [[nodiscard]] Result<std::optional<std::uint64_t>> number_of(const std::string& chain, const JobId& job, Epoch epoch);
  // Returns the receipts of a job on which the two sides disagree.
  [[nodiscard]] Result<std::vector<ReceiptRecord>> disputed(const JobId& job);
  // Returns at most `most` receipts behind `after`.
  [[nodiscard]] Result<std::vector<ReceiptRecord>> receipts_after(const std::string& chain, std::uint64_t after, std::size_t most);
  // Adds receipts and moves the chain's head to the last one, in one transaction. Those that are there already stay.
  [[nodiscard]] Result<void> keep(const std::string& chain, const std::vector<ReceiptRecord>& receipts);
  [[nodiscard]] Result<std::vector<AcceptedRates>> accepted(const std::string& chain);  // oldest first
  [[nodiscard]] Result<void> accept(const std::string& chain, WallTime at, const std::string& rates);
  [[nodiscard]] Result<std::optional<BilledAttempt>> attempt(const JobId& job, Epoch epoch);

 private:
  explicit ReceiptStore(db::Database database) : db_(std::move(database)) {}
  db::Database db_;
};

}  // namespace gridctl::registry
