// SPDX-License-Identifier: Apache-2.0
// Manages control groups, version 1, 2 or hybrid: the kernel's memory events, and our own groups for plain processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/process.hpp"

namespace gridctl::agent {

struct MemoryEvents {
  std::uint64_t oom_kills = 0;
  std::uint64_t peak_bytes = 0;  // 0 = not known
};
// Returns the events of the memory group that a process is in ("self" or a pid), as far as they can be read from here.
[[nodiscard]] std::optional<MemoryEvents> memory_events(const std::string& process);
// Returns the folder of that group; empty if there is none. It stays readable for a moment after the process died.
[[nodiscard]] os::Path memory_group(const std::string& process);
[[nodiscard]] std::optional<MemoryEvents> memory_events_in(const os::Path& group);

struct GroupLimits {
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t processes = 0;  // 0 each: none
};

// Represents the groups made for one attempt of the process engine; one folder per hierarchy, possibly none.
class Group {
 public:
  // Makes the groups that the host allows; never fails, may be empty.
  [[nodiscard]] static Group make(const std::string& name, const GroupLimits& limits);
  // Finds the folders again after their creator died.
  [[nodiscard]] static Group find(const std::string& name);
  [[nodiscard]] bool empty() const { return folders_.empty(); }
  [[nodiscard]] const std::vector<os::Path>& folders() const { return folders_; }
  [[nodiscard]] std::vector<os::ProcessId> members() const;
  // Uses the freezer of version 2; returns false if it is missing or does not freeze.
  [[nodiscard]] bool set_frozen(bool frozen) const;
  void remove();  // REQUIRES: no members; what cannot go stays

 private:
  std::vector<os::Path> folders_;
};

// Moves the calling process into the group.
void join_group(const os::Path& folder);

}  // namespace gridctl::agent
