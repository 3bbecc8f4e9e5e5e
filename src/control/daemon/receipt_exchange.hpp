// SPDX-License-Identifier: Apache-2.0
// Implements the researcher's half of receipts: takes those of a lent host, checks them and answers them.
// gridctl-lend(7), RECEIPTS.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/rates.hpp"
#include "registry/receipts.hpp"
#include "wire/receipts.hpp"

namespace gridctl::control {

// Returns this state directory's own key for answers, drawn at the first use.
[[nodiscard]] Result<Digest> receipt_seed(const os::Path& state_directory);

struct ReceiptTalk {
  registry::ReceiptStore& store;
  std::string chain;
  HostName provider;
  ControllerId controller;
  Digest seed;
  WallTime now;
  std::int64_t agreed_micro = 0;  // for a chain that is not known yet
  std::function<Result<wire::ReceiptsReply>(const wire::ReceiptsRequest&)> ask;
};
// Returns whether the user agreed to pay these rates; `hour`: what they come to for the whole host.
[[nodiscard]] bool is_agreed(const registry::AgreedPrice& most, const Rates& rates, std::int64_t hour);

struct ReceiptNews {
  registry::ReceiptChain chain;
  Rates rates;           // what the host asks
  bool accepted = false;  // and we have accepted, or there is nothing to accept
  std::size_t added = 0;
};
// May be interrupted anywhere and called again; it neither loses nor duplicates a receipt. `accepts`: for the prices
// that the host asked before.
[[nodiscard]] Result<ReceiptNews> exchange_receipts(const ReceiptTalk& talk, const std::optional<Rates>& accepts);

}  // namespace gridctl::control
