// SPDX-License-Identifier: Apache-2.0
// Defines what a lent machine records about its use by researchers, and how both sides exchange receipts for it:
// gridctl-lend(7), RECEIPTS. Receipts are opaque here: those who can sign read them (lend/receipt.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/rates.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_receipts_feature = "receipts", k_receipts_operation = "receipts";
inline constexpr std::size_t k_receipts_most = 64;           // in one message
inline constexpr std::size_t k_receipt_bytes_max = 8 * 1024;  // of one, or of an answer to one

// Names the folder "receipts" of an invitation on the lent machine, and its files.
inline constexpr std::string_view k_receipts_folder = "receipts";
inline constexpr std::string_view k_receipts_book = "book";                    // a receipt a line, oldest first
inline constexpr std::string_view k_receipts_answers = "answers";              // the researcher's, in the same order
inline constexpr std::string_view k_receipts_key = "key";                      // the machine's private key, in hexadecimal digits
inline constexpr std::string_view k_receipts_host_key = "host_key";            // its public half
inline constexpr std::string_view k_receipts_researcher_key = "researcher_key";  // public
inline constexpr std::string_view k_receipts_accepted = "accepted";            // the rates that the researcher accepts
inline constexpr std::string_view k_receipts_known = "known";                  // the number of the last receipt that the researcher has
inline constexpr std::string_view k_receipts_uses = "uses";                    // a folder with a file for each attempt without a receipt

struct ReceiptAnswer {
  std::uint64_t number = 0;  // of the receipt
  std::string line;
};
struct ReceiptsRequest {
  Digest researcher_key;
  std::uint64_t after = 0;               // the receipts behind this one are wanted
  std::optional<Rates> accepts{};        // jobs may begin at these rates from now on
  std::vector<ReceiptAnswer> answers{};  // to receipts, without a gap behind those that the machine has
};
struct ReceiptsReply {
  std::optional<Digest> host_key{};  // nullopt: it has none yet
  Rates rates;                       // for attempts that begin now
  std::uint64_t head = 0;            // the number of its last receipt
  std::uint64_t answered = 0;        // the number of the last answer that it has
  std::vector<std::string> receipts{};
  std::vector<std::string> pending{};  // attempts, as JOB.EPOCH, that run or are still to get a receipt; all others have theirs, or cost nothing
};
GRIDCTL_MESSAGE(ReceiptsRequest, parse_receipts)  // op "receipts"
GRIDCTL_MESSAGE(ReceiptsReply, parse_receipts_reply)

// Records the use of an attempt while it runs.
struct UseMark {
  JobId job;
  Epoch epoch;
  Rates rates;  // as they were when it began
  int gpus = 0;
  std::int64_t cpus_milli = 0;  // processors times 1000
  MeteredUse use;
  WallTime began, ended;  // of what is counted
  std::string boot_id;
  bool done = false;  // nothing more is added
  std::uint64_t seen_up = 0, seen_down = 0;  // counters of its network as they were read last
};
[[nodiscard]] std::string encode(const UseMark& mark);
[[nodiscard]] Result<UseMark> parse_use_mark(std::string_view text);
[[nodiscard]] std::string encode(const Rates& rates);
[[nodiscard]] Result<Rates> parse_stored_rates(std::string_view text);

}  // namespace gridctl::wire
