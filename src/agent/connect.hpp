// SPDX-License-Identifier: Apache-2.0
// Serves one connection of a controller: preamble, handshake, then requests until standard input ends.
#pragma once

#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Communicates over the two descriptors. Exit status: 0 if the peer closed, 1 if it broke the protocol. `guest`: the
// file that says what the owner of this machine allows this controller; empty: everything, because the machine belongs
// to its user.
[[nodiscard]] int run_connect(int read_fd, int write_fd, os::Clock& clock, const os::Path& guest = {});

}  // namespace gridctl::agent
