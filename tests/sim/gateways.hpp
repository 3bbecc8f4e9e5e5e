// SPDX-License-Identifier: Apache-2.0
// The gateways of a laptop's services: their processes, which outlive the daemon, and the files by which they and the
// daemon talk. What a gateway decides, the shipped GatewayRules decide; here stand only ways, probes and requests.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/serve/gateway_files.hpp"
#include "control/serve/gateway_rules.hpp"
#include "registry/all_records.hpp"
#include "world.hpp"

namespace gridctl::sim {

class SimGateways : public control::GatewayAccess {
 public:
  // `records`: those of the laptop, or nullptr while they are not open. `disk_full`: of the laptop.
  SimGateways(World& world, int laptop, std::function<registry::AllRecords*()> records, const bool& disk_full)
      : world_(world), laptop_(laptop), records_(std::move(records)), disk_full_(disk_full) {}

  [[nodiscard]] bool lives(const JobId& service) override { return services_[service.value].process.has_value(); }
  [[nodiscard]] Result<void> start(const JobId& service) override;
  [[nodiscard]] std::optional<control::GatewayInfo> told(const JobId& service) override {
    return services_[service.value].info;
  }
  [[nodiscard]] Result<void> let_leave(const JobId& service, int replica, WallTime now) override;

  void die();  // all of them
  // By `service apply`.
  void stay(const JobId& service, int replica) { services_[service.value].leave.erase(replica); }
  [[nodiscard]] bool is_drained(const JobId& service, int replica);

  // For the eye of truth. Whether a client of this gateway would be answered by the replica in this slot, from 1 on.
  [[nodiscard]] bool answers(const JobId& service, int replica);
  [[nodiscard]] bool answered_for(const JobId& service, int replica, Nanos time);  // without a break, as it sees
  [[nodiscard]] bool is_busy(const JobId& service, int replica);  // requests are under way there
  [[nodiscard]] int load(const JobId& service) const;            // requests that clients have under way now
  [[nodiscard]] Nanos lives_since(const JobId& service);         // -1: it does not live
  [[nodiscard]] std::optional<Nanos> leaves_since(const JobId& service, int replica);
  [[nodiscard]] bool any_lives() const;

 private:
  struct Way {  // to one replica
    Epoch epoch{};
    std::string host;
    JobId job;
    Nanos open_since = -1, lost_at = -1;  // -1: never
    Nanos good_since = -1, bad_since = -1;
    bool up = false;
    control::ServerState server = control::ServerState::out;
    Nanos busy_until = 0;
  };
  struct Process {
    std::uint64_t number = 0;
    Nanos began = 0, ticked = 0;
    std::optional<control::GatewayRules> rules;
    std::vector<Way> ways;
    std::int64_t revision = -1;  // of the registry
    std::uint64_t requests = 0;
    double rest = 0;  // of a request
    bool stops = false;
  };
  struct Service {
    std::optional<Process> process;
    std::optional<control::GatewayInfo> info;  // the file
    std::map<int, WallTime> leave;             // files: until when
    std::map<int, Nanos> leaves;               // since when, without a break
  };
  void begin(const JobId& service);
  void tick(const JobId& service, std::uint64_t number);
  [[nodiscard]] bool look(const JobId& service, Service& mine);  // false: the service is over
  void follow(Way& way);
  [[nodiscard]] bool can_reach(const std::string& host) const;
  [[nodiscard]] Way* way(const JobId& service, int replica);

  World& world_;
  const int laptop_;
  const std::function<registry::AllRecords*()> records_;
  const bool& disk_full_;
  std::map<std::string, Service> services_;
  std::uint64_t processes_ = 0;
};

}  // namespace gridctl::sim
