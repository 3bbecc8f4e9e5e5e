// SPDX-License-Identifier: Apache-2.0
// The way by which work at a remote opens that remote.
#pragma once

#include <functional>
#include <memory>

#include "control/copies/remotes.hpp"

namespace gridctl::control {

using OpenRemote = std::function<Result<std::unique_ptr<store::Backend>>(const RemoteAccess&, AgentNetwork&, os::Clock&)>;
// Opens a remote that is registered, and so has a mark.
[[nodiscard]] inline Result<std::unique_ptr<store::Backend>> open_marked_remote(const RemoteAccess& access,
                                                                                AgentNetwork& net, os::Clock& clock) {
  return open_remote(access, net, clock);
}

}  // namespace gridctl::control
