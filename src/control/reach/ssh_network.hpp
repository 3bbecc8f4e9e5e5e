// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/reach/agent_network.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"

namespace gridctl::control {

class SshNetwork : public AgentNetwork {
 public:
  SshNetwork(os::Loop& loop, os::Clock& clock, Paths paths, ControllerId controller)
      : loop_(loop), clock_(clock), paths_(std::move(paths)), controller_(std::move(controller)) {}

  [[nodiscard]] Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider& provider,
                                                              BootTime deadline) override;
  [[nodiscard]] Result<transfer::BulkLink> open(const registry::Provider& provider, BootTime deadline) override;
  [[nodiscard]] Result<std::unique_ptr<AgentChannel>> stream(const registry::Provider& provider,
                                                             const wire::EnterRequest& whom,
                                                             BootTime deadline) override;

 private:
  os::Loop& loop_;
  os::Clock& clock_;
  const Paths paths_;
  const ControllerId controller_;
};

}  // namespace gridctl::control
