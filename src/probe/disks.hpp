// SPDX-License-Identifier: Apache-2.0
// Finds mounted file systems that jobs could use, with their kinds and free space. A network file system whose server
// is gone would block the probe forever, so separate programs under a deadline measure such file systems.
#pragma once

#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

struct Mount {
  Disk disk;           // without sizes
  std::string device;  // "259:2"
};

// Returns the file systems of /proc/self/mountinfo that hold data: one per device, the shortest mount point of each.
// Pure.
[[nodiscard]] std::vector<Mount> parse_mounts(std::string_view mountinfo);
// Returns "nvme", "ssd" or "hdd" according to /sys, through partitions, device mapper and RAID.
[[nodiscard]] DiskKind block_kind(const HostFiles& files, std::string_view device, std::string_view source);
// Parses "4096 1000 900" of `stat -f`: block size, blocks, free blocks.
void take_space(std::string_view answer, Disk& disk);

void add_disks(const HostFiles& files, const Toolbox& toolbox, Inventory& inventory);

}  // namespace gridctl::probe
