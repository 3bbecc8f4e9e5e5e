// SPDX-License-Identifier: Apache-2.0
// Finding every process of an attempt, however it hid: descent, control group, and the mark in its environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/cgroup.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace gridctl::agent {

// The process that holds an flock on the file, as this PID namespace numbers it. The kernel's own word; works through
// bind mounts into containers.
[[nodiscard]] std::optional<os::ProcessId> lock_holder(const os::Path& file);

// Processes of ours whose environment holds `mark`.
[[nodiscard]] std::vector<os::ProcessId> marked_processes(const std::string& mark);

// Processes whose command line holds these arguments, one behind the other.
[[nodiscard]] std::vector<os::ProcessId> processes_called_with(const std::vector<std::string>& arguments);

// Adds those of `more` that are not in `processes` yet.
void merge(std::vector<os::ProcessId>& processes, const std::vector<os::ProcessId>& more);

// Sends to exactly these processes, never to one that reused a pid.
void signal_each(const std::vector<os::ProcessId>& processes, int signal);
// Only those that have a handler for it: the others would die of it.
void signal_each_catching(const std::vector<os::ProcessId>& processes, int signal);
// Only the others.
void signal_each_not_catching(const std::vector<os::ProcessId>& processes, int signal);

}  // namespace gridctl::agent
