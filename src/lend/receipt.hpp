// SPDX-License-Identifier: Apache-2.0
// Receipts for the use of a lent machine: signed by the machine, answered by its researcher, each linked to the one
// before. Pure; gridctl-lend(7), RECEIPTS.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/rates.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "crypto/ed25519.hpp"

namespace gridctl::lend {

// The two sides of a chain.
struct ReceiptPair {
  std::string chain;  // the id of the invitation
  ControllerId controller;
  Digest host_key, researcher_key;  // public
  bool operator==(const ReceiptPair&) const = default;
};

struct Receipt {
  ReceiptPair pair;
  std::uint64_t number = 1;
  Digest previous;  // hash_of the receipt before; of the first: hash_of the pair
  JobId job;
  Epoch epoch;
  WallTime began, ended;  // by the machine's wall clock, for people
  bool lost = false;      // the machine died under it: up to its last mark
  int gpus = 0;
  std::int64_t cpus_milli = 0;
  MeteredUse use;
  Rates rates;
  std::int64_t amount = 0;  // millionths of a US dollar
};
[[nodiscard]] Digest hash_of(const ReceiptPair& pair);
[[nodiscard]] Digest hash_of(const Receipt& receipt);

// The researcher's word on a receipt.
struct Answer {
  Digest receipt;  // its hash
  bool agreed = false;
  std::int64_t amount = 0;  // the researcher's own figure, where it disagrees
  std::string why;          // in words; empty: it agrees
};

struct SignedReceipt {
  Receipt receipt;
  crypto::Signature signature{};  // of the machine
  std::optional<Answer> answer;
  crypto::Signature answer_signature{};  // of the researcher
  // The amount that both sides agree on, or the researcher's where they do not.
  [[nodiscard]] std::int64_t counted() const { return answer && !answer->agreed ? answer->amount : receipt.amount; }
};

// One line each; there is no second way to write the same. A receipt's line may have an answer in it.
[[nodiscard]] SignedReceipt sign(const Receipt& receipt, const Digest& host_seed);
[[nodiscard]] std::string to_line(const SignedReceipt& receipt);
[[nodiscard]] std::string answer_line(const Answer& answer, const Digest& researcher_seed);
// state_unreadable: a byte of it is not as it was signed. Whether it fits into a chain is not looked at.
[[nodiscard]] Result<SignedReceipt> parse_receipt(std::string_view line);
// Puts an answer into a receipt. state_unreadable: it is none to this one, or not the researcher's.
[[nodiscard]] Result<void> add_answer(SignedReceipt& receipt, std::string_view line);

enum class ChainFault : std::uint8_t { none, damaged, missing, cut, fork };
[[nodiscard]] std::string_view fault_name(ChainFault fault);

struct ChainReport {
  ChainFault fault = ChainFault::none;
  std::string text;  // which receipt, and what is wrong with it
  std::vector<SignedReceipt> receipts;  // those that are good
  std::uint64_t disputed = 0, unanswered = 0;
  std::int64_t asked = 0, counted = 0;
};
// The lines of one chain, in order. `head`: the number of the last one that somebody knows; 0: nobody says.
[[nodiscard]] ChainReport check_chain(std::span<const std::string> lines, std::uint64_t head = 0);
// Compares two chains that are good, one of each side.
[[nodiscard]] ChainReport compare_chains(const ChainReport& own, const ChainReport& other);

// An attempt as far as the researcher can know it by itself.
struct SeenAttempt {
  std::int64_t ran_ms = 0;         // at most
  int gpus = 0;                    // at most
  std::int64_t cpus_milli = 0;     // at most
  std::vector<Rates> accepted{};   // the rates that it had accepted when the attempt began
  std::uint64_t billed = 0;        // the number of an earlier receipt for it; 0: there is none
  std::string never_began{};       // why its host did not start it, by its own words; empty: it may have run
};
inline constexpr std::uint64_t k_traffic_most = 1'250'000;  // bytes a millisecond, each way: 10 Gbit/s
inline constexpr std::int64_t k_receipt_slack_ms = 5'000;  // the two sides do not count from the same instant
// nullopt: the researcher knows of no such attempt.
[[nodiscard]] Answer judge(const Receipt& receipt, const std::optional<SeenAttempt>& seen);

}  // namespace gridctl::lend
