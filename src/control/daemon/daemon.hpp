// SPDX-License-Identifier: Apache-2.0
// Runs the background controller; a lock allows one per state directory.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::control {

struct DaemonStatus {
  bool running = false;
  int pid = 0;
  std::string host;  // where it runs
  std::string version;
  std::string started_at;  // RFC 3339
};

// Follows all jobs until told to stop (SIGTERM, SIGINT) or, with `exit_when_idle`, until there has been nothing to
// follow for a while. state_in_use when another daemon has the lock.
[[nodiscard]] Result<void> run_daemon(const os::Path& state_directory, bool exit_when_idle);
// Starts `gridctl daemon run` in the background unless one runs; returns when it holds the lock and is ready.
[[nodiscard]] Result<DaemonStatus> ensure_daemon(const os::Path& state_directory, bool exit_when_idle);
[[nodiscard]] Result<DaemonStatus> daemon_status(const os::Path& state_directory);
// Asks the daemon to end and waits; jobs continue on their hosts.
[[nodiscard]] Result<DaemonStatus> stop_daemon(const os::Path& state_directory);

}  // namespace gridctl::control
