// SPDX-License-Identifier: Apache-2.0
// Reads the PCI bus from /sys: the same for every vendor, and without any tool.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"

namespace gridctl::probe {

// Converts "00000000:1A:00.0" to /sys's spelling "0000:1a:00.0". Empty if it is not an address.
[[nodiscard]] std::string sysfs_address(std::string_view address);
// Converts "16.0 GT/s PCIe" to generation 4; nullopt for "Unknown" and similar texts.
[[nodiscard]] std::optional<int> pcie_generation(std::string_view speed);
// Returns the current and maximum generation and width of the device's own link.
[[nodiscard]] PcieLink pcie_link(const HostFiles& files, std::string_view address);
// The NUMA node is nullopt if the device has none (-1) or does not exist. bus_lacks() returns true if /sys shows
// devices but none at this address; false if the address is unknown.
[[nodiscard]] bool bus_lacks(const HostFiles& files, std::string_view address);
[[nodiscard]] std::optional<int> pci_numa_node(const HostFiles& files, std::string_view address);

// Returns how two devices reach each other, by their places in the tree of bridges; `unknown` if /sys does not show the
// tree, as in most virtual machines.
[[nodiscard]] LinkKind pci_path(const HostFiles& files, std::string_view a, std::string_view b);

// Counts NVSwitch chips: NVIDIA's bridges of class 0680.
[[nodiscard]] int count_nvswitches(const HostFiles& files);

// Fills the facts of each GPU that tools left open: PCIe link and NUMA node; adds a gap if the bus does not show them
// either.
void complete_from_bus(const HostFiles& files, std::vector<Gpu>& gpus);
// Adds a link for each pair of complete GPUs that has none and whose path the bus shows.
void add_bus_links(const HostFiles& files, Inventory& inventory);

}  // namespace gridctl::probe
