// SPDX-License-Identifier: Apache-2.0
// Waiting for things to happen to a job.
#pragma once

#include <functional>

#include "cmd/context.hpp"
#include "registry/registry.hpp"

namespace gridctl::cmd {

// How often the database is asked whether anything changed, and the log files whether they grew.
inline constexpr Duration k_follow_period = std::chrono::milliseconds{150};

// Calls `look` at once and then every period until it returns true. timed_out (with exit code 124) when --timeout runs
// out, interrupted on SIGINT and SIGTERM; both say what goes on `meanwhile`, and the line that waits `again`.
[[nodiscard]] Result<void> repeat(Context& context, Duration period, const std::function<Result<bool>()>& look,
                                  const std::string& meanwhile, const std::string& again);

// Follows with the job as it is at that moment (read anew only after a commit). A daemon that died meanwhile is started
// again.
[[nodiscard]] Result<void> follow(Context& context, registry::Registry& registry, const JobId& id,
                                  const std::function<Result<bool>(const registry::Job&)>& look);

struct WatchOptions {
  bool logs = true;          // stream the job's output to stdout
  bool from_start = true;    // else a few lines of what was, then what is new
  bool quiet = false;        // nothing on stderr
  bool events_json = false;  // events as JSON lines on stdout
  bool keep_order = false;   // of a bag: output in the order of its tasks
  std::string joblog{};      // of a bag: file that gets a line for each task
  bool joblog_goes_on = false;
  std::string results{};     // of a bag: folder that gets what each task prints
};
// The live view with a terminal, one line per change without; returns the job when it is final.
[[nodiscard]] Result<registry::Job> watch(Context& context, registry::Registry& registry, const JobId& id,
                                          const WatchOptions& options);

}  // namespace gridctl::cmd
