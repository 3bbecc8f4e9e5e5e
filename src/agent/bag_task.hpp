// SPDX-License-Identifier: Apache-2.0
// Represents one task of a bag while it runs: a process in its own session, whose output is read from its pipes.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/bag_output.hpp"
#include "agent/bag_queue.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Describes how the tasks of one worker are started.
struct TaskLaunch {
  std::vector<std::string> words;  // the program, and what it is called with
  std::vector<char*> variables;    // up to a nullptr
  int input = -1;
  bool split = false;  // standard error has a pipe of its own
};

// Starts the task in its own session; returns an errno value, or 0 if it runs.
[[nodiscard]] int spawn_task(pid_t& pid, const TaskLaunch& launch, int out, int err);

class RunningTask {
 public:
  explicit RunningTask(BagTask task) : task_(std::move(task)) {}
  [[nodiscard]] int start(const TaskLaunch& launch, os::Clock& clock);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const BagTask& task() const { return task_; }
  [[nodiscard]] BootTime began() const { return began_; }
  void add_polls(std::vector<pollfd>& polls) const;
  [[nodiscard]] bool is_among(const std::vector<int>& descriptors) const;
  // Reads what waits in the pipes.
  void drain(std::uint64_t bytes_max, const os::Path& folder);

  // Sends TERM, and sets the kind of end to report.
  void ask_to_end(wire::TaskEnd as, BootTime kill_at);
  [[nodiscard]] std::optional<BootTime> kill_at() const { return kill_at_; }
  void kill(BootTime again_at);
  [[nodiscard]] bool is_ending() const { return end_ != wire::TaskEnd::ended; }

  // REQUIRES: the process has ended and was not waited for. Processes that it started end with it.
  [[nodiscard]] wire::TaskResult finish(std::uint64_t bytes_max, const os::Path& folder, os::Clock& clock);
  TaskOutput& output() { return output_; }
  TaskOutput& errors() { return errors_; }

 private:
  BagTask task_;
  pid_t pid_ = -1;
  BootTime began_{};
  WallTime began_wall_{};
  os::Fd out_, err_;
  TaskOutput output_, errors_;
  wire::TaskEnd end_ = wire::TaskEnd::ended;
  std::optional<BootTime> kill_at_;
};

}  // namespace gridctl::agent
