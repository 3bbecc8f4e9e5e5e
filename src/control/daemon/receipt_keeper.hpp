// SPDX-License-Identifier: Apache-2.0
// Fetches receipts of lent hosts when attempts have ended there, and from time to time; accepts what their owners ask,
// as far as the user has agreed to pay.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/rates.hpp"
#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "control/reach/paths.hpp"
#include "registry/receipts.hpp"
#include "wire/receipts.hpp"

namespace gridctl::control {

// Implements the researcher's half of receipts: takes those of a lent host, checks them and answers them.
// gridctl-lend(7), RECEIPTS.
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

// Runs on the loop thread.
class ReceiptKeeper : public FleetListener {
 public:
  ReceiptKeeper(os::Executor& run, os::Clock& clock, Paths paths, AgentNetwork& net, ControllerId controller, Fleet& fleet,
                const JobBook& book)
      : run_(run), clock_(clock), paths_(std::move(paths)), net_(net), controller_(std::move(controller)), fleet_(fleet), book_(book) {
    fleet_.listen(*this);
  }

  void tick(BootTime now);
  void connected(const FleetHost& host, const wire::AgentHello& hello) override;
  void polled(const FleetHost& host, const wire::PollReply& reply) override;

 private:
  struct Talk {
    bool under_way = false;
    BootTime next{};
    std::optional<Rates> asked{};                            // what the host asks, and we would accept
    std::set<std::pair<std::string, std::uint64_t>> ended{};  // attempts whose end is known
  };
  void begin(const FleetHost& host, Talk& talk);
  void told(const HostName& name, const Result<ReceiptNews>& news);
  // Attempts that start there were placed with the cost of the host at these rates.
  [[nodiscard]] bool may_accept(const FleetHost& host, const Rates& rates) const;

  os::Executor& run_;
  os::Clock& clock_;
  const Paths paths_;
  AgentNetwork& net_;
  const ControllerId controller_;
  Fleet& fleet_;
  const JobBook& book_;
  std::map<std::string, Talk> talks_;  // by the name of the host; those that know receipts
};

}  // namespace gridctl::control
