// SPDX-License-Identifier: Apache-2.0
// One connection of a controller: preamble, handshake, then requests until standard input ends.
#pragma once

#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Speaks over the two descriptors. Exit status: 0 when the peer closed, 1 when it broke the protocol. `guest`: the file
// of what the owner of this machine lets this controller do; empty: everything, for the machine is its user's own.
[[nodiscard]] int run_connect(int read_fd, int write_fd, os::Clock& clock, const os::Path& guest = {});

}  // namespace gridctl::agent
