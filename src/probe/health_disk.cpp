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

void read_disk_health(const HostFiles& files, const os::Path& home, wire::DiskHealth& disk) {
  std::error_code error;
  const os::Path real = std::filesystem::weakly_canonical(home, error);
  const os::Path place = error ? home : real;
  if (const auto space = std::filesystem::space(place, error); !error) {
    disk.free_bytes = space.available;
    disk.total_bytes = space.capacity;
  }
  const std::string mounts = files.read("/proc/self/mountinfo").value_or("");
  const MountPoint mount = mount_of_path(mounts, place);
  disk.read_only = std::ranges::find(mount.options, "ro") != mount.options.end();
  const std::string& source = mount.source;
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
