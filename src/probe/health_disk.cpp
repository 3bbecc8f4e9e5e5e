// SPDX-License-Identifier: Apache-2.0
// Checks the disk beneath the agent's data: whether it is present, writable and free of failure reports.
#include <algorithm>

#include "base/text.hpp"
#include "probe/facts.hpp"
#include "probe/health_machine.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

std::string whole_disk(std::string_view partition) {
  const std::size_t last = partition.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == partition.size()) return std::string(partition);
  // In "nvme0n1p2" and "mmcblk0p1", the number of the disk itself stands before a 'p'.
  if (partition[last] == 'p' && last > 0 && is_digit(partition[last - 1])) return std::string(partition.substr(0, last));
  const bool numbered = partition.starts_with("nvme") || partition.starts_with("mmcblk") ||
                        partition.starts_with("md") || partition.starts_with("dm-") || partition.starts_with("loop");
  return std::string(numbered ? partition : partition.substr(0, last + 1));
}

std::string mount_source(std::string_view mountinfo, const os::Path& path) {
  const std::string wanted = path.lexically_normal().string();
  std::size_t best = 0;
  std::string source;
  for (const std::string& line : split_lines(mountinfo)) {
    const std::size_t dash = line.find(" - ");
    const std::vector<std::string> fields = split(line, ' ');
    if (dash == std::string::npos || fields.size() < 6) continue;
    const std::string& point = fields[4];
    const bool holds = point == "/" || wanted == point || wanted.starts_with(point + "/");
    const std::vector<std::string> tail = split(std::string_view(line).substr(dash + 3), ' ');
    if (!holds || point.size() < best || tail.size() < 2) continue;
    best = point.size();
    source = tail[1];
  }
  return source;
}

void read_disk_health(const HostFiles& files, const os::Path& home, wire::DiskHealth& disk) {
  std::error_code error;
  const os::Path real = std::filesystem::weakly_canonical(home, error);
  const os::Path place = error ? home : real;
  if (const auto space = std::filesystem::space(place, error); !error) {
    disk.free_bytes = space.available;
    disk.total_bytes = space.capacity;
  }
  const std::string mounts = files.read("/proc/self/mountinfo").value_or("");
  const std::vector<std::string> options = split(mount_options(mounts, place), ',');
  disk.read_only = std::ranges::find(options, "ro") != options.end();
  const std::string source = mount_source(mounts, place);
  if (!source.starts_with("/dev/")) return;
  const std::string name = source.substr(source.rfind('/') + 1);
  disk.file_system_errors = files.read_number("/sys/fs/ext4/" + name + "/errors_count").value_or(0);
  const std::string whole = whole_disk(name);
  if (whole.starts_with("nvme")) {
    const std::size_t namespace_at = whole.find('n', 4);
    const std::string controller = whole.substr(0, namespace_at);
    const std::string state = files.read_line("/sys/class/nvme/" + controller + "/state");
    if (!state.empty() && state != "live") disk.drive_problem = controller + " is " + state;
  } else if (const std::string state = files.read_line("/sys/block/" + whole + "/device/state");
             !state.empty() && state != "running") {
    disk.drive_problem = whole + " is " + state;
  }
}

}  // namespace gridctl::probe
