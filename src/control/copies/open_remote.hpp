// SPDX-License-Identifier: Apache-2.0
// How work at a remote gets to it.
#pragma once

#include <functional>
#include <memory>

#include "control/copies/remotes.hpp"

namespace gridctl::control {

using OpenRemote = std::function<Result<std::unique_ptr<store::Backend>>(const RemoteAccess&, const Paths&, os::Clock&)>;
// As a registered remote is opened.
[[nodiscard]] inline Result<std::unique_ptr<store::Backend>> open_marked_remote(const RemoteAccess& access,
                                                                                const Paths& paths, os::Clock& clock) {
  return open_remote(access, paths, clock);
}

}  // namespace gridctl::control
