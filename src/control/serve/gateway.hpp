// SPDX-License-Identifier: Apache-2.0
// The gateway of one service, a process of its own: it goes on while the daemon is started again, and its traffic waits
// for nobody's disk. HAProxy takes the requests at the service's address; ways lead to the replicas. The registry says
// where those run.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Until the service has ended, or SIGTERM. state_in_use when another gateway serves it.
[[nodiscard]] Result<void> run_gateway(const os::Path& state_directory, const JobId& service);

}  // namespace gridctl::control
