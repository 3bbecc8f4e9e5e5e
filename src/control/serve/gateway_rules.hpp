// SPDX-License-Identifier: Apache-2.0
// Decides from what the gateway sees: which replicas get requests, what to report about them to the daemon, and how
// many are wanted. No I/O except the registry's.
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

// Describes a replica as the registry has it.
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

// Describes the present state of one replica.
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
  // `before`: the last report of the previous gateway.
  GatewayRules(const job::Service& service, int replicas_max, int slots, const GatewayInfo& before);

  void take(const ServiceSeen& seen);
  // Returns the state that the server of the replica in this slot (from 0) should have. `passed` is the time since the
  // last look.
  [[nodiscard]] ServerState see(std::size_t slot, const ReplicaSight& sight, Duration passed);
  // Passes the figures to Scaler::see.
  void see_requests(BootTime now, std::uint64_t under_way, std::uint64_t requests, bool serves) {
    scaler_.see(now, under_way, requests, serves);
  }
  [[nodiscard]] bool stops() const { return stops_; }  // the user has ended the service
  // Fills in the conclusions from everything seen.
  void tell(GatewayInfo& info) const;

 private:
  const job::Service service_;
  Scaler scaler_;
  std::vector<bool> leaves_;
  std::vector<ReadyClock> clocks_;
  bool stops_ = false;
};

}  // namespace gridctl::control
