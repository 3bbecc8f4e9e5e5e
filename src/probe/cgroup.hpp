// SPDX-License-Identifier: Apache-2.0
// Reads the limits that control groups (v1, v2 or both mounted) set for this process.
#pragma once

#include <cstdint>
#include <optional>

#include "probe/host_files.hpp"

namespace gridctl::probe {

struct CgroupLimits {
  int version = 0;                            // 2 when memory is governed by v2, 1 by v1, 0 = none mounted
  std::optional<std::uint64_t> memory_bytes;  // the lowest limit on the way up; nullopt = none
  std::optional<double> cpus;                 // the lowest quota on the way up, in CPUs
  bool writable = false;                      // memory and cpu groups are mounted for writing
  bool delegated = false;                     // the cpu and memory controllers reach our own group
};

[[nodiscard]] CgroupLimits cgroup_limits(const HostFiles& files);

}  // namespace gridctl::probe
