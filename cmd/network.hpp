// SPDX-License-Identifier: Apache-2.0
// The way to hosts, for a command that asks them.
#pragma once

#include "cmd/context.hpp"
#include "control/reach/ssh_network.hpp"

namespace gridctl::cmd {

// `told`: of the agent's way to a host, where it is missing.
[[nodiscard]] inline Result<control::SshNetwork> network_of(const Context& context, registry::Registry& registry,
                                                            control::UploadProgress told = {}) {
  TRY_ASSIGN(ControllerId controller, registry.controller_id());
  return control::SshNetwork(context.clock, context.paths(), std::move(controller), std::move(told));
}

}  // namespace gridctl::cmd
