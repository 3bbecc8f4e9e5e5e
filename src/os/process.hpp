// SPDX-License-Identifier: Apache-2.0
// Handles child processes: runs a tool under a deadline, or spawns one that lives on. It never uses a shell unless
// argv[0] is one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::os {

struct ExitStatus {
  int code = -1;   // 0..255 when it exited
  int signal = 0;  // when killed
  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
};

struct RunOptions {
  Duration timeout = std::chrono::seconds{30};  // then the whole process group is killed: timed_out
  std::string input;                            // to stdin; empty = /dev/null
  std::size_t output_max = 4u << 20;            // bytes kept of each stream; the rest is read and dropped
  std::map<std::string, std::string> environment_extra;
  Path directory;  // empty = ours
};
struct RunOutcome {
  ExitStatus status;
  std::string out, err;
};
// Runs argv to its end. not_found if argv[0] does not exist. It does not wait for output that grandchildren write after
// argv[0] itself has ended.
[[nodiscard]] Result<RunOutcome> run(const std::vector<std::string>& argv, const RunOptions& options = {});

struct SpawnOptions {
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;  // -1 = /dev/null; borrowed for the call
  std::vector<int> keep_fds;                          // passed on under their own numbers
  bool new_session = false;                           // setsid
  bool new_group = false;                             // setpgid: kill(-pid) reaches all of it
  bool detach = false;                                // double fork: the child is not ours to wait for; pid is returned
  bool die_with_parent = false;  // SIGKILL when the calling *thread* ends (PR_SET_PDEATHSIG); not with detach
  std::optional<std::map<std::string, std::string>> environment;  // whole environment; nullopt = ours
  Path directory;
};
// Returns the pid. The child has default signal dispositions, no blocked signals and no descriptors but 0, 1, 2 and
// keep_fds; argv[0] without '/' is looked up in our PATH. Errors of exec are reported (through a close-on-exec pipe),
// not lost.
[[nodiscard]] Result<int> spawn(const std::vector<std::string>& argv, const SpawnOptions& options);

[[nodiscard]] Result<std::optional<ExitStatus>> try_wait(int pid);  // our child; nullopt = still running
[[nodiscard]] Result<ExitStatus> wait(int pid);

// Identifies a process even after its pid is reused: start time in clock ticks since boot (/proc/PID/stat field 22).
struct ProcessId {
  int pid = 0;
  std::uint64_t start_ticks = 0;
  auto operator<=>(const ProcessId&) const = default;
};
[[nodiscard]] std::optional<ProcessId> identify(int pid);  // nullopt when there is none (zombies count as none)
[[nodiscard]] bool is_alive(const ProcessId& process);
[[nodiscard]] int process_id();  // our own pid
[[nodiscard]] unsigned user_id();  // of whom this process runs as
// Returns every live descendant of `pid` (children of children…), without itself.
[[nodiscard]] std::vector<ProcessId> descendants(int pid);
// Opens a descriptor that becomes readable when the process ends; not_found if it has already ended, unsupported on
// kernels before 5.3.
[[nodiscard]] Result<Fd> open_pidfd(const ProcessId& process);
// Returns false if the process is gone (also if its pid was reused).
[[nodiscard]] Result<bool> send_signal(const ProcessId& process, int signal);
void ignore_broken_pipes();              // SIGPIPE -> EPIPE, for the whole process; children get the default back
[[nodiscard]] std::string boot_id();     // /proc/sys/kernel/random/boot_id
[[nodiscard]] std::string machine_id();  // /etc/machine-id, or empty
[[nodiscard]] std::string host_name();   // of this machine; empty if it is unknown
[[nodiscard]] std::optional<Path> find_program(const std::string& name);  // in PATH

}  // namespace gridctl::os
