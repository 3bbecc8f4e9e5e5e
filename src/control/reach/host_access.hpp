// SPDX-License-Identifier: Apache-2.0
// The values that blocking work needs to reach one host and to report its result. A value: copies go to the threads of
// the pool.
#pragma once

#include <memory>

#include "base/ids.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/life_sign.hpp"
#include "control/reach/link_meter.hpp"
#include "os/clock.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

struct HostAccess {
  registry::Provider provider;
  AgentNetwork* net = nullptr;  // outlives the work
  os::Clock* clock = nullptr;
  LinkMeter* meter = nullptr;           // hears of what is moved, where there is one
  std::shared_ptr<LifeSign> life = {};  // hears of every answer, where there is one

  // REQUIRES: net and clock. Blocks.
  [[nodiscard]] Result<std::unique_ptr<wire::Link>> open(Duration patience) const {
    TRY_ASSIGN(transfer::BulkLink bulk, net->open(provider, clock->boot() + patience));
    return std::move(bulk.link);
  }
};

}  // namespace gridctl::control
