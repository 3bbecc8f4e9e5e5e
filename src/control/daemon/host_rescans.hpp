// SPDX-License-Identifier: Apache-2.0
// Rescans hosts that restarted, or whose agent was updated: their hardware may differ from the recorded one.
#pragma once

#include <set>
#include <string>

#include "control/fleet/fleet.hpp"
#include "control/reach/agent_network.hpp"
#include "registry/host_records.hpp"

namespace gridctl::control {

class HostRescans : public FleetListener {
 public:
  HostRescans(os::Executor& run, os::Clock& clock, registry::HostRecords& registry, AgentNetwork& net, Fleet& fleet)
      : run_(run), clock_(clock), registry_(registry), net_(net), fleet_(fleet) {
    fleet_.listen(*this);
  }

  void connected(const FleetHost& host, const wire::AgentHello& hello) override;

 private:
  os::Executor& run_;
  os::Clock& clock_;
  registry::HostRecords& registry_;
  AgentNetwork& net_;
  Fleet& fleet_;
  std::set<std::string> under_way_;  // names of hosts
};

}  // namespace gridctl::control
