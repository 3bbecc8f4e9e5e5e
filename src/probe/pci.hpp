// SPDX-License-Identifier: Apache-2.0
// The PCI bus as /sys shows it: the same for every vendor, and without any tool.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"

namespace gridctl::probe {

// "00000000:1A:00.0" and "0000:1a:00.0" name one device: the latter is how /sys spells it. Empty when it is no address.
[[nodiscard]] std::string sysfs_address(std::string_view address);
// "16.0 GT/s PCIe" is generation 4; nullopt for "Unknown" and the like.
[[nodiscard]] std::optional<int> pcie_generation(std::string_view speed);
// Generation and width, now and at most, of the device's own link.
[[nodiscard]] PcieLink pcie_link(const HostFiles& files, std::string_view address);
// nullopt when the device has none (-1) or is not there.
// Devices can be seen there, and none at this address; false when the address is not known.
[[nodiscard]] bool bus_lacks(const HostFiles& files, std::string_view address);
[[nodiscard]] std::optional<int> pci_numa_node(const HostFiles& files, std::string_view address);

// How two devices reach each other by their places in the tree of bridges; `unknown` when /sys does not show the tree,
// as in most virtual machines.
[[nodiscard]] LinkKind pci_path(const HostFiles& files, std::string_view a, std::string_view b);

// NVSwitch chips: NVIDIA's bridges of class 0680.
[[nodiscard]] int count_nvswitches(const HostFiles& files);

// Fills what tools left open of each GPU: PCIe link and NUMA node; adds a gap where the bus does not tell either.
void complete_from_bus(const HostFiles& files, std::vector<Gpu>& gpus);
// Adds a link for each pair of whole GPUs that has none and whose path the bus shows.
void add_bus_links(const HostFiles& files, Inventory& inventory);

}  // namespace gridctl::probe
