// SPDX-License-Identifier: Apache-2.0
// The ssh-agent that a command has, for the daemon to log in with.
#pragma once

#include "control/reach/paths.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Keeps this process's $SSH_AUTH_SOCK in the state directory. Where a login is refused, it is tried once more with the
// ssh-agent that a command offered last: the shell that started the daemon may be gone, and its ssh-agent with it.
void offer_login_agent(const Paths& paths);
// Empty: none was offered, or it is our own or gone.
[[nodiscard]] os::Path offered_login_agent(const Paths& paths);

}  // namespace gridctl::control
