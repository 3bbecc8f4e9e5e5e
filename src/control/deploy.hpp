// SPDX-License-Identifier: Apache-2.0
// Gets an agent to talk to on a host: starts the one that lies there under our hash, and brings it there first when it
// does not.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/agent_link.hpp"
#include "os/clock.hpp"
#include "ssh/target.hpp"

namespace gridctl::control {

struct AgentImage {
  std::string_view arch;        // as `uname -m` says
  std::string_view bytes;       // the static binary
  std::string_view sha256_hex;  // of the bytes
};

struct AgentCall {
  std::vector<AgentImage> images;
  ControllerId controller;
  std::vector<std::string> features;  // "events": the agent may push; leave out for bulk work
};

// Blocks, until `deadline` at most. Errors of ssh::connect, and: unsupported (no agent for the machine's processor),
// no_space, io (home not writable, noexec), protocol_violation (something else answers).
[[nodiscard]] Result<AgentSession> open_agent(const ssh::Target& target, const AgentCall& call, BootTime deadline,
                                              os::Clock& clock);

}  // namespace gridctl::control
