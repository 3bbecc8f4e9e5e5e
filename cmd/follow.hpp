// SPDX-License-Identifier: Apache-2.0
// Waits for events of a job, and checks whether a daemon follows it: listings are only as new as what that last saw.
#pragma once

#include <functional>

#include "cmd/context.hpp"
#include "registry/registry.hpp"

namespace gridctl::cmd {

// Interval of the checks for changes in the database and for growth of the log files.
inline constexpr Duration k_follow_period = std::chrono::milliseconds{150};

// Calls `look` at once and then every period until it returns true. timed_out (with exit code 124) when --timeout
// expires, interrupted on SIGINT and SIGTERM; both say what continues `meanwhile`, and the command that waits `again`.
[[nodiscard]] Result<void> repeat(Context& context, Duration period, const std::function<Result<bool>()>& look,
                                  const std::string& meanwhile, const std::string& again);

// Follows with the job's present state (read again only after a commit). A daemon that died in the meantime is
// restarted.
[[nodiscard]] Result<void> follow(Context& context, registry::JobRecords& registry, const JobId& id,
                                  const std::function<Result<bool>(const registry::Job&)>& look);

struct WatchOptions {
  bool logs = true;          // stream the job's output to stdout
  bool from_start = true;    // else a few lines of what was, then what is new
  bool quiet = false;        // nothing on stderr
  bool events_json = false;  // events as JSON lines on stdout
  bool keep_order = false;   // of a bag: output in the order of its tasks, as `parallel -k`
  std::string joblog{};      // of a bag: file that gets a line for each task; empty: none
  bool joblog_goes_on = false;
  std::string results{};     // of a bag: folder for what each task prints, as `parallel --results`; empty: none
};
// Shows the live view on a terminal, otherwise one line per change; returns the job when it is final.
[[nodiscard]] Result<registry::Job> watch(Context& context, registry::JobRecords& registry, const JobId& id,
                                          const WatchOptions& options);

// Warns on standard error, before a listing, that nothing follows unfinished jobs, and what to do about it.
[[nodiscard]] Result<void> warn_unfollowed(Context& context, registry::JobRecords& registry);

// Returns true while a daemon of this state directory asks its hosts for their state.
[[nodiscard]] bool is_followed(const Context& context);
// Returns the state of a host, as far as it is known today: "answered" for one that did when it was last asked, if
// nothing has asked it since.
[[nodiscard]] std::string liveness_today(const registry::Provider& provider, bool followed, WallTime now);

}  // namespace gridctl::cmd
