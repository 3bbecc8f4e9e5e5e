// SPDX-License-Identifier: Apache-2.0
// Reads processors and NUMA nodes from /sys and /proc/cpuinfo.
#pragma once

#include <string_view>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"

namespace gridctl::probe {

// Returns the words of "flags" (x86) or "Features" (ARM) that decide which programs run.
[[nodiscard]] std::vector<std::string> parse_cpu_features(std::string_view cpuinfo);
[[nodiscard]] CpuLayout read_cpu(const HostFiles& files);
// Fills cpu and memory_free_bytes, and gives the reason if a value is unavailable.
void add_cpu(const HostFiles& files, Inventory& inventory);

}  // namespace gridctl::probe
