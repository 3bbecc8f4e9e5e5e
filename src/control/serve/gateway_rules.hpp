// SPDX-License-Identifier: Apache-2.0
// What a gateway makes of what it sees: which replicas get requests, what it tells the daemon of them, and how many
// it wants. No I/O but the registry's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "control/serve/balancer_text.hpp"
#include "control/serve/gateway_files.hpp"
#include "control/serve/replica_way.hpp"
#include "control/serve/scaler.hpp"
#include "registry/job_records.hpp"

namespace gridctl::control {

// The service as the registry has it.
struct ReplicaSeen {
  std::optional<ReplicaPlace> place;
  bool leaves = false;  // it is being stopped or moved: no new requests
};
struct ServiceSeen {
  std::vector<ReplicaSeen> replicas;  // by slot
  bool stops = false, over = false;
};
using FindProvider = std::function<Result<registry::Provider>(const HostName&)>;
[[nodiscard]] Result<ServiceSeen> service_seen(registry::JobRecords& records, const FindProvider& find, const JobId& id);

// One replica, now.
struct ReplicaSight {
  Epoch epoch{};           // that the way leads to
  bool reachable = false;  // the way is open
  bool up = false;         // its probes pass
  bool idle = false;       // it gets no requests, and has none
  bool dismissed = false;  // whoever ends it soon has said so
  std::string unfit{};     // why the probe's command says no; empty: it passes, or there is none
};

class GatewayRules {
 public:
  // `before`: what the gateway before this one told last.
  GatewayRules(const job::Service& service, int replicas_max, int slots, const GatewayInfo& before);

  void take(const ServiceSeen& seen);
  // Returns what the server of the replica in this slot, from 0 on, shall be. `passed` is the time since the last look.
  [[nodiscard]] ServerState see(std::size_t slot, const ReplicaSight& sight, Duration passed);
  // Passes on to Scaler::see.
  void see_requests(BootTime now, std::uint64_t under_way, std::uint64_t requests, bool serves) {
    scaler_.see(now, under_way, requests, serves);
  }
  [[nodiscard]] bool stops() const { return stops_; }  // the user has ended the service
  // Fills in what follows from all that was seen.
  void tell(GatewayInfo& info) const;

 private:
  const job::Service service_;
  Scaler scaler_;
  std::vector<bool> leaves_;
  std::vector<ReadyClock> clocks_;
  bool stops_ = false;
};

}  // namespace gridctl::control
