// SPDX-License-Identifier: Apache-2.0
// Reads CPU, memory, disk, system and identity of the machine, from files only. Parsers are pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"

namespace gridctl::probe {

// Returns "model name" of /proc/cpuinfo on x86, the nearest equivalent elsewhere.
[[nodiscard]] std::string parse_cpu_model(std::string_view cpuinfo);
// Returns the processors of "0-3,8,10-11"; none if it is not a list.
[[nodiscard]] std::vector<unsigned> parse_cpu_list(std::string_view list);
[[nodiscard]] std::string parse_pretty_name(std::string_view os_release);
[[nodiscard]] std::uint64_t parse_memory_total(std::string_view meminfo);  // bytes

// Fills everything in the inventory that needs no tool. Unavailable facts become notes.
void read_machine(const HostFiles& files, const os::Path& home, Inventory& inventory);

// Returns devices of display and accelerator classes by PCI vendor id: addresses, sorted.
[[nodiscard]] std::vector<std::string> pci_gpus(const HostFiles& files, std::string_view vendor_id);

}  // namespace gridctl::probe
