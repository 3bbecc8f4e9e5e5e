// SPDX-License-Identifier: Apache-2.0
// Reads network cards of the machine: RDMA devices from /sys/class/infiniband, the rest from /sys/class/net. It needs
// no tool.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"

namespace gridctl::probe {

// Parses "400 Gb/sec (4X NDR)" into bits a second.
[[nodiscard]] std::optional<double> infiniband_rate(std::string_view text);
// Returns the ports of cards, without virtual interfaces (bridges, veth, tunnels).
[[nodiscard]] std::vector<Nic> read_nics(const HostFiles& files);
// Fills nics and gpu_direct, and gives the reason if there is none.
void add_nics(const HostFiles& files, Inventory& inventory);

}  // namespace gridctl::probe
