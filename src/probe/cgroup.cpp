// SPDX-License-Identifier: Apache-2.0
#include "probe/cgroup.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::uint64_t k_no_limit = 1ull << 60;  // v1 says 2^63 rounded down to a page for "none"
constexpr int k_levels_max = 64;                  // nesting of groups

struct CgroupMount {
  std::string root, point, kind, options;
  bool writable = false;
};

bool has_word(std::string_view list, std::string_view word, char separator) {
  const std::vector<std::string> words = split(list, separator);
  return std::ranges::find(words, word) != words.end();
}

std::vector<CgroupMount> mounts_of(const HostFiles& files) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split_lines(files.read("/proc/self/mountinfo").value_or(""))) {
    // Parses "36 35 98:0 ROOT POINT rw,noatime master:1 - TYPE SOURCE OPTIONS".
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(std::string_view(line).substr(0, dash), ' ');
    const std::vector<std::string> right = split(std::string_view(line).substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3 || !right[0].starts_with("cgroup")) continue;
    mounts.push_back({left[3], left[4], right[0], right[2], left.size() > 5 && has_word(left[5], "rw", ',')});
  }
  return mounts;
}

// Returns the directories of our group and those above it, innermost first; empty if the controller is not mounted.
std::vector<std::string> group_directories(const HostFiles& files, const std::vector<CgroupMount>& mounts,
                                           std::string_view controller) {
  const bool unified = controller.empty();
  std::string path;
  bool found = false;
  for (const std::string& line : split_lines(files.read("/proc/self/cgroup").value_or(""))) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (unified ? !controllers.empty() : !has_word(controllers, controller, ',')) continue;
    path = line.substr(second + 1);
    found = true;
  }
  if (!found) return {};
  for (const CgroupMount& mount : mounts) {
    if (unified ? mount.kind != "cgroup2" : mount.kind != "cgroup" || !has_word(mount.options, controller, ','))
      continue;
    // In a container, the mount's root is our group itself or one above it.
    std::string below = path == "/" ? "" : path;
    if (mount.root != "/" && below.starts_with(mount.root)) below.erase(0, mount.root.size());
    if (below.find("..") != std::string::npos) below.clear();
    std::vector<std::string> directories;
    for (int level = 0; level < k_levels_max; ++level) {
      directories.push_back(mount.point + below);
      const std::size_t slash = below.rfind('/');
      if (below.empty() || slash == std::string::npos) break;
      below.erase(slash);
    }
    return directories;
  }
  return {};
}

template <class T>
void lower_to(std::optional<T>& limit, T value) {
  if (!limit || value < *limit) limit = value;
}

void take_v2(const HostFiles& files, const std::vector<std::string>& directories, CgroupLimits& limits) {
  for (const std::string& directory : directories) {
    if (const auto bytes = files.read_number(directory + "/memory.max")) lower_to(limits.memory_bytes, *bytes);
    const std::vector<std::string> quota = split(files.read_line(directory + "/cpu.max"), ' ');
    if (quota.size() != 2) continue;
    const auto part = whole_number(quota[0]), period = whole_number(quota[1]);
    if (part && period && *period != 0)
      lower_to(limits.cpus, static_cast<double>(*part) / static_cast<double>(*period));
  }
}

}  // namespace

CgroupLimits cgroup_limits(const HostFiles& files) {
  const std::vector<CgroupMount> mounts = mounts_of(files);
  CgroupLimits limits;
  const std::vector<std::string> memory = group_directories(files, mounts, "memory");
  const std::vector<std::string> cpu = group_directories(files, mounts, "cpu");
  for (const std::string& directory : memory)
    if (const auto bytes = files.read_number(directory + "/memory.limit_in_bytes"); bytes && *bytes < k_no_limit)
      lower_to(limits.memory_bytes, *bytes);
  for (const std::string& directory : cpu) {
    const auto quota = files.read_number(directory + "/cpu.cfs_quota_us");  // "-1" = none, which is no whole number
    const auto period = files.read_number(directory + "/cpu.cfs_period_us");
    if (quota && period && *period != 0)
      lower_to(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  const std::vector<std::string> unified = group_directories(files, mounts, "");
  take_v2(files, unified, limits);
  const auto writable = [&](std::string_view controller) {
    return std::ranges::any_of(mounts, [&](const CgroupMount& mount) {
      return mount.writable &&
             (controller.empty() ? mount.kind == "cgroup2" : has_word(mount.options, controller, ','));
    });
  };
  limits.writable = memory.empty() ? !unified.empty() && writable("") : writable("memory") && writable("cpu");
  if (!memory.empty()) limits.version = 1;
  else if (!unified.empty()) limits.version = 2;
  if (limits.version == 2) {
    const std::string controllers = files.read_line(unified.front() + "/cgroup.controllers");
    limits.delegated = has_word(controllers, "cpu", ' ') && has_word(controllers, "memory", ' ');
  }
  return limits;
}

}  // namespace gridctl::probe
