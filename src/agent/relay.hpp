// SPDX-License-Identifier: Apache-2.0
// Runs on a machine with an SSH server where a lent host and the researcher who uses it meet; both connect to it. It
// passes encrypted bytes from one login to another, over a socket of its user: the SSH server forwards nothing, and no
// port is opened. gridctl-lend(7).
#pragma once

#include <span>

#include "os/clock.hpp"

namespace gridctl::agent {

// Runs `gridctl-agent relay ...`; returns the exit status.
//   add ID EXPIRES_MS KEY  admits the host that logs in with KEY (base64 of an Ed25519 key), by one forced command;
//                          until EXPIRES_MS (since 1970) for the first time
//   rm ID                  revokes that, and ends its connections
//   host ID                the forced command: waits on stdin and stdout for a caller
//   call ID                joins stdin and stdout with the newest waiting host
[[nodiscard]] int relay_command(std::span<char* const> arguments, os::Clock& clock);

}  // namespace gridctl::agent
