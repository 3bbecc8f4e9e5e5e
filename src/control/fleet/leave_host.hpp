// SPDX-License-Identifier: Apache-2.0
// Removes everything that gridctl has put on a host: gridctl-agent(7), FILES ON THE HOST.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "control/reach/agent_network.hpp"

namespace gridctl::control {

struct LeftBehind {
  std::uint64_t bytes = 0;  // what stays in the agent's folder; 0: the folder is gone
  bool busy = false;        // attempts of ours are still there: nothing was removed
};
// Removes this controller's files from the host, and the agent too if no other controller uses it. Blocks.
[[nodiscard]] Result<LeftBehind> leave_host(AgentNetwork& net, const registry::Provider& provider,
                                            const ControllerId& controller, BootTime deadline);

}  // namespace gridctl::control
