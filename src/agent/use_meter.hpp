// SPDX-License-Identifier: Apache-2.0
// Measures how much of this host the running attempts of a controller use, while that controller asks. The answer to a
// poll never waits: a separate thread measures, and its results go with a later answer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

inline constexpr Duration k_use_every = std::chrono::seconds{10};

class UseMeter {
 public:
  UseMeter(os::Path home, ControllerId controller, os::Clock& clock);
  // Adds the measurements since the last answer to the running attempts, and starts a measurement when one is due.
  void add_to(wire::PollReply& reply);

 private:
  struct Shared;  // also the thread's: a tool that hangs in the kernel outlives the connection
  std::shared_ptr<Shared> shared_;
};

// Holds one process from /proc/PID/stat.
struct ProcessTimes {
  int parent = 0;
  std::uint64_t ticks = 0;  // of 1/100 s: its own, and those of children that it has waited for
};
[[nodiscard]] std::optional<ProcessTimes> parse_process_times(std::string_view stat);

// Holds all processes from one look at /proc.
class ProcessTable {
 public:
  [[nodiscard]] static ProcessTable read(const os::Path& proc = "/proc");
  void add(int pid, const ProcessTimes& times) { processes_.insert_or_assign(pid, times); }
  struct Sum {
    std::uint64_t ticks = 0;
    std::vector<int> pids;
  };
  // Returns the sum over a process and all its descendants.
  [[nodiscard]] Sum below(int pid) const;

 private:
  std::map<int, ProcessTimes> processes_;
};

}  // namespace gridctl::agent
