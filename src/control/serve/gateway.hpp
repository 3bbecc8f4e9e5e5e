// SPDX-License-Identifier: Apache-2.0
// Runs the gateway of one service as a separate process: it continues while the daemon restarts, and its traffic never
// waits for a disk. HAProxy takes the requests at the service's address; ways lead to the replicas. The registry says
// where those run.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Runs until the service has ended, or SIGTERM. state_in_use when another gateway serves it.
[[nodiscard]] Result<void> run_gateway(const os::Path& state_directory, const JobId& service);

}  // namespace gridctl::control
