// SPDX-License-Identifier: Apache-2.0
#include "agent/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {
namespace {

using os::Path;

const Path k_root = "/sys/fs/cgroup";
constexpr std::uint64_t k_proc_file_max = 1u << 20;

std::string text_of(const Path& path) {
  auto text = os::read_file(path, k_proc_file_max);
  return text ? std::move(*text) : std::string{};
}

// Reads "key value" lines.
std::uint64_t value_of(const std::string& text, std::string_view key) {
  for (const std::string& line : split_lines(text)) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    return leading_number<std::uint64_t>(std::string_view(line).substr(key.size() + 1)).value_or(0);
  }
  return 0;
}

std::uint64_t number_in(const Path& path) { return leading_number<std::uint64_t>(text_of(path)).value_or(0); }

// Returns the group of a process in one hierarchy: "" = version 2.
std::string group_path(const std::string& process, std::string_view controller) {
  for (const std::string& line : split_lines(text_of("/proc/" + process + "/cgroup"))) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const auto listed = split(names, ',');
    const bool wanted = controller.empty() ? names.empty() : std::ranges::find(listed, controller) != listed.end();
    if (wanted) return line.substr(second + 1);
  }
  return {};
}

bool write_text(const Path& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const os::Fd file(fd);
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Path beneath(const Path& hierarchy, const std::string& group) { return hierarchy / Path(group).relative_path(); }

bool unified() { return os::exists(k_root / "cgroup.controllers"); }

// Returns where a group with this name would be in each relevant hierarchy.
std::vector<Path> places(const std::string& name) {
  std::vector<Path> all;
  if (name.empty()) return all;  // the group that we are in ourselves, with whoever else is: never to be ended
  if (unified()) {
    all.push_back(k_root / name);  // the root group alone may hold both processes and limited children
    all.push_back(beneath(k_root, group_path("self", "")) / name);
    return all;
  }
  for (const char* controller : {"memory", "cpu", "pids"}) {
    const Path hierarchy = k_root / controller;
    if (!os::exists(hierarchy)) continue;
    all.push_back(beneath(hierarchy, group_path("self", controller)) / name);
    all.push_back(hierarchy / name);
  }
  return all;
}

void set_limits(const Path& group, const GroupLimits& limits) {
  const std::string memory = std::to_string(limits.memory_bytes);
  if (limits.memory_bytes > 0) {
    write_text(group / "memory.max", memory);
    write_text(group / "memory.swap.max", "0");
    write_text(group / "memory.oom.group", "0");
    write_text(group / "memory.limit_in_bytes", memory);
    write_text(group / "memory.memsw.limit_in_bytes", memory);
  }
  if (limits.cpus > 0) {
    const auto quota = std::to_string(static_cast<long>(std::lround(limits.cpus * 100'000)));
    write_text(group / "cpu.max", quota + " 100000");
    write_text(group / "cpu.cfs_quota_us", quota);
  }
  if (limits.processes > 0) write_text(group / "pids.max", std::to_string(limits.processes));
}

}  // namespace

Path memory_group(const std::string& process) {
  for (const auto& [hierarchy, controller] : {std::pair{k_root / "memory", "memory"}, std::pair{k_root, ""}}) {
    const std::string group = group_path(process, controller);
    if (group.empty()) continue;
    // Inside a container, the group's path is the host's, but its folder is mounted as the root.
    for (const Path& folder : {beneath(hierarchy, group), hierarchy})
      if (os::exists(folder / "memory.events") || os::exists(folder / "memory.oom_control")) return folder;
  }
  return {};
}

std::optional<MemoryEvents> memory_events_in(const Path& group) {
  if (group.empty()) return std::nullopt;
  for (const char* file : {"memory.events", "memory.oom_control"}) {
    const std::string text = text_of(group / file);
    if (text.empty()) continue;
    return MemoryEvents{value_of(text, "oom_kill"),
                        std::max(number_in(group / "memory.peak"), number_in(group / "memory.max_usage_in_bytes"))};
  }
  return std::nullopt;
}

std::optional<MemoryEvents> memory_events(const std::string& process) {
  return memory_events_in(memory_group(process));
}

Group Group::make(const std::string& name, const GroupLimits& limits) {
  Group group;
  if (unified()) write_text(k_root / "cgroup.subtree_control", "+memory +cpu +pids");
  std::vector<Path> parents_done;
  for (const Path& place : places(name)) {
    // Uses one folder per hierarchy: the first place that works.
    const Path hierarchy = unified() ? k_root : Path(k_root / *std::next(place.begin(), 4));
    if (std::ranges::find(parents_done, hierarchy) != parents_done.end()) continue;
    if (::mkdir(place.c_str(), 0755) != 0 && errno != EEXIST) continue;
    set_limits(place, limits);
    parents_done.push_back(hierarchy);
    group.folders_.push_back(place);
  }
  return group;
}

Group Group::find(const std::string& name) {
  Group group;
  for (const Path& place : places(name))
    if (os::exists(place / "cgroup.procs")) group.folders_.push_back(place);
  return group;
}

std::vector<os::ProcessId> Group::members() const {
  std::vector<os::ProcessId> found;
  for (const Path& folder : folders_) {
    for (const std::string& line : split_lines(text_of(folder / "cgroup.procs"))) {
      const int pid = leading_number<int>(line).value_or(0);
      const auto process = pid > 0 ? os::identify(pid) : std::nullopt;
      if (process && std::ranges::find(found, *process) == found.end()) found.push_back(*process);
    }
  }
  return found;
}

bool Group::set_frozen(bool frozen) const {
  constexpr int k_tries = 100;
  for (const Path& folder : folders_) {
    if (!write_text(folder / "cgroup.freeze", frozen ? "1" : "0")) continue;
    for (int turn = 0; turn < k_tries; ++turn) {
      if (value_of(text_of(folder / "cgroup.events"), "frozen") == (frozen ? 1 : 0)) return true;
      os::pause_for(std::chrono::milliseconds{10});
    }
    write_text(folder / "cgroup.freeze", "0");
  }
  return false;
}

void Group::remove() {
  for (const Path& folder : folders_) ::rmdir(folder.c_str());
}

void join_group(const Path& folder) { write_text(folder / "cgroup.procs", "0"); }

}  // namespace gridctl::agent
