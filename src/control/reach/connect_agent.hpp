// SPDX-License-Identifier: Apache-2.0
// From a registered provider to a conversation with its agent: inside of this room only. Others have AgentNetwork.
#pragma once

#include "control/reach/deploy.hpp"
#include "control/reach/paths.hpp"
#include "control/reach/ways.hpp"
#include "lend/call.hpp"
#include "os/clock.hpp"
#include "registry/records.hpp"
#include "ssh/target.hpp"
#include "transfer/parallel_transfer.hpp"

namespace gridctl::control {

// As `ssh` would go there today: the user's ssh configuration is asked each time. usage: a key file is not there.
[[nodiscard]] Result<ssh::Target> target_of(const registry::Provider& provider, const Paths& paths);
// The way to the relay of a lent host. `login_agent`: of ssh, in the place of $SSH_AUTH_SOCK; may be empty.
[[nodiscard]] Result<lend::RelayCommand> relay_of(const registry::Provider& provider,
                                                  const lend::Invitation& invitation, const Paths& paths,
                                                  const os::Path& login_agent, os::Clock& clock);
// Blocks until `deadline`. The ways of the provider are tried one after the other. `features`: "events" for the loop;
// without, the connection becomes one of streams, or of bulk work.
[[nodiscard]] Result<AgentSession> open_session(const registry::Provider& provider, const Paths& paths,
                                                const ControllerId& controller, std::vector<std::string> features,
                                                BootTime deadline, os::Clock& clock, WayMemory& ways,
                                                const UploadProgress& progress = {});
// For a worker thread: requests, and trees of chunks. Tells which encodings the agent decodes, and lets it send what we
// decode.
[[nodiscard]] Result<transfer::BulkLink> open_bulk(const registry::Provider& provider, const Paths& paths,
                                                   const ControllerId& controller, BootTime deadline, os::Clock& clock,
                                                   WayMemory& ways, const UploadProgress& progress = {});

}  // namespace gridctl::control
