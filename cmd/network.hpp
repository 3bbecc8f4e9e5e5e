// SPDX-License-Identifier: Apache-2.0
// Gives a command access to hosts.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cmd/context.hpp"
#include "control/reach/ssh_network.hpp"
#include "ssh/target.hpp"

namespace gridctl::cmd {

// `told`: is told about the upload of the agent to a host where it is missing.
[[nodiscard]] inline Result<control::SshNetwork> network_of(const Context& context, registry::HostRecords& registry,
                                                            control::UploadProgress told = {}) {
  TRY_ASSIGN(ControllerId controller, registry.controller_id());
  return control::SshNetwork(context.clock, context.paths(), std::move(controller), std::move(told));
}

// Implements trust on first use. Shows unknown host keys and asks a person. Empty if nobody can be asked: no terminal,
// --json, or CI.
[[nodiscard]] std::function<bool(const std::string& peer, std::span<const ssh::HostKey> keys)> asker(Context& context);

}  // namespace gridctl::cmd
