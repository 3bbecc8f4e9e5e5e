// SPDX-License-Identifier: Apache-2.0
// The values that blocking work needs to reach one host and to report its result. A value: copies go to the threads of
// the pool.
#pragma once

#include <atomic>
#include <memory>

#include "base/time.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/link_meter.hpp"
#include "os/clock.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

// When a host was last heard of over a connection other than its heartbeat's: one that sends a checkpoint is not
// silent, and an hour of sending on a thin link must not cost the attempt that made it. Written by threads of a pool,
// read by the loop.
class LifeSign {
 public:
  void heard(BootTime at) { ns_ = at.ns; }
  [[nodiscard]] BootTime last() const { return {ns_}; }  // 0 = never

 private:
  std::atomic<std::int64_t> ns_{0};
};

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
