// SPDX-License-Identifier: Apache-2.0
// Runs the job's first process: `gridctl-agent init`. In a container it is PID 1, otherwise the subreaper of everything
// that the job starts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr int k_init_refused = 125;                          // exit status: this launch was already used up
inline constexpr int k_pipe_bytes = 1 << 20;                        // lets the job go on while a supervisor is replaced
inline constexpr Duration k_init_slack = std::chrono::seconds{15};  // after deadline + grace, init acts on its own

// Names the file in the run folder with output that no supervisor had read from the pipe when the job ended, at most
// k_pipe_bytes.
inline constexpr const char* k_rest = "rest";

// Names the file in the run folder of a gang with, for each rank of this host, a line with its label ("rank 4"), which
// its output carries, or an empty line. `env.` with its position here holds variables of this rank alone. Without them,
// init starts one process.
inline constexpr const char* k_ranks_file = "ranks";
inline constexpr const char* k_rank_env = "env.";

// Paths are as the job sees them.
struct InitPlan {
  os::Path run;      // once, lock, log, rest, phase, exit, env, setup.sh, run.sh
  os::Path control;  // deadline
  os::Path work;
  os::Path secrets;  // empty = none
  Duration grace{};
  std::vector<os::Path> groups;  // control groups to join first
  bool closed = false;           // nothing begins where there is a way to addresses that a guest's jobs do not reach
};
[[nodiscard]] std::vector<std::string> to_arguments(const InitPlan& plan);  // behind "init"
[[nodiscard]] Result<InitPlan> parse_init(std::span<char* const> arguments);

// Runs the job to its end; returns the exit status of this process. REQUIRES: no other thread.
[[nodiscard]] int run_init(const InitPlan& plan);

}  // namespace gridctl::agent
