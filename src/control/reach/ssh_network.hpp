// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/reach/agent_network.hpp"
#include "control/reach/deploy.hpp"
#include "control/reach/paths.hpp"
#include "control/reach/ways.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"

namespace gridctl::control {

class SshNetwork : public AgentNetwork {
 public:
  SshNetwork(os::Loop& loop, os::Clock& clock, Paths paths, ControllerId controller)
      : loop_(&loop), clock_(clock), paths_(std::move(paths)), controller_(std::move(controller)) {}
  // For who only opens: connect() and stream() are `unsupported`. `told`: of the agent's way to a host.
  SshNetwork(os::Clock& clock, Paths paths, ControllerId controller, UploadProgress told = {})
      : clock_(clock), paths_(std::move(paths)), controller_(std::move(controller)), told_(std::move(told)) {}

  [[nodiscard]] Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider& provider,
                                                              BootTime deadline) override;
  [[nodiscard]] Result<transfer::BulkLink> open(const registry::Provider& provider, BootTime deadline) override;
  [[nodiscard]] Result<std::unique_ptr<AgentChannel>> stream(const registry::Provider& provider,
                                                             const wire::EnterRequest& whom,
                                                             BootTime deadline) override;
  [[nodiscard]] Result<std::string> run_script(const registry::Provider& provider, const std::string& script,
                                               BootTime deadline) override;
  [[nodiscard]] std::vector<std::string> addresses(const registry::Provider& provider, BootTime deadline) override;

 private:
  os::Loop* const loop_ = nullptr;
  os::Clock& clock_;
  const Paths paths_;
  const ControllerId controller_;
  const UploadProgress told_;
  const std::shared_ptr<WayMemory> ways_ = std::make_shared<WayMemory>();
};

}  // namespace gridctl::control
