// SPDX-License-Identifier: Apache-2.0
// Starting the agent on a host over SSH, and putting it there first when it is missing.
//
// The host runs ${GRIDCTL_AGENT_HOME:-~/.gridctl}/bin/SHA256/gridctl-agent connect. Before it is first used, the
// uploaded file must name its own SHA-256 (`gridctl-agent --self-hash`): that shows that it arrived whole and that the
// place allows execution.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "control/reach/agent_link.hpp"
#include "control/reach/embedded_agent.hpp"
#include "os/clock.hpp"
#include "ssh/target.hpp"

namespace gridctl::control {

inline constexpr Duration k_login_wait = std::chrono::seconds{20};  // for a login at a host that answers

using UploadProgress = std::function<void(std::size_t sent, std::size_t total)>;

struct AgentCall {
  std::vector<AgentImage> images;
  ControllerId controller;
  std::vector<std::string> features;  // "events": the agent may push; leave out for bulk work
  UploadProgress progress = {};       // of putting the agent there
  Duration login_wait = k_login_wait;
};

// How a command is started on the host; ssh::connect in real life.
using Connector = std::function<Result<std::unique_ptr<ssh::Channel>>(const std::string& command, BootTime deadline)>;
[[nodiscard]] Connector over_ssh(const ssh::Target& target, os::Clock& clock);

// Blocks, until `deadline` at most; each step but the way of the agent's bytes has a limit of some seconds of its own,
// and those may take until the deadline as long as they move. What the agent sent after its hello is in the session's
// decoder: a LoopLink or BlockingLink made of it loses nothing. Errors: as ssh::connect; refused (disk or quota of the
// host is full, home not writable or mounted noexec, no agent for its machine type), protocol_violation (something else
// answers, or the agent arrived damaged), timed_out (a login shell that does not end, a link that stands still), each
// with what to do.
[[nodiscard]] Result<AgentSession> open_agent(const Connector& connector, const AgentCall& call, BootTime deadline,
                                              os::Clock& clock);

}  // namespace gridctl::control
