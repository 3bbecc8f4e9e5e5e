// SPDX-License-Identifier: Apache-2.0
// Finds every process of an attempt, however it hid: by descent, control group, and the mark in its environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/cgroup.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace gridctl::agent {

// Returns the process that holds an flock on the file, with its number in this PID namespace. The kernel's own record;
// works through bind mounts into containers.
[[nodiscard]] std::optional<os::ProcessId> lock_holder(const os::Path& file);

// Returns our processes whose environment holds `mark`.
[[nodiscard]] std::vector<os::ProcessId> marked_processes(const std::string& mark);

// Returns processes whose command line holds these arguments, one after another.
[[nodiscard]] std::vector<os::ProcessId> processes_called_with(const std::vector<std::string>& arguments);

// Adds the processes of `more` that are not in `processes` yet.
void merge(std::vector<os::ProcessId>& processes, const std::vector<os::ProcessId>& more);

// Sends to exactly these processes, never to one that reused a pid.
void signal_each(const std::vector<os::ProcessId>& processes, int signal);
// Sends only to processes that have a handler for it: the others would die of it.
void signal_each_catching(const std::vector<os::ProcessId>& processes, int signal);
// Sends only to the others.
void signal_each_not_catching(const std::vector<os::ProcessId>& processes, int signal);

}  // namespace gridctl::agent
