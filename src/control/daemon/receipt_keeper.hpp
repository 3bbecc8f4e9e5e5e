// SPDX-License-Identifier: Apache-2.0
// Fetches receipts of lent hosts when attempts have ended there, and from time to time; accepts what their owners ask,
// as far as the user has agreed to pay.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "control/daemon/receipt_exchange.hpp"
#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "control/reach/paths.hpp"

namespace gridctl::control {

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
