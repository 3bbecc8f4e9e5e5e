// SPDX-License-Identifier: Apache-2.0
// Lets work at a remote open that remote.
#pragma once

#include <functional>
#include <memory>

#include "control/copies/remotes.hpp"

namespace gridctl::control {

using OpenRemote = std::function<Result<std::unique_ptr<store::Backend>>(const RemoteAccess&, AgentNetwork&, os::Clock&)>;
// Opens a registered remote, which therefore has a mark.
[[nodiscard]] inline Result<std::unique_ptr<store::Backend>> open_marked_remote(const RemoteAccess& access,
                                                                                AgentNetwork& net, os::Clock& clock) {
  return open_remote(access, net, clock);
}

}  // namespace gridctl::control
