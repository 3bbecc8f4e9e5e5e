// SPDX-License-Identifier: Apache-2.0
// Network cards of the machine: RDMA devices by /sys/class/infiniband, the rest by /sys/class/net. No tool needed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"

namespace gridctl::probe {

// "400 Gb/sec (4X NDR)" in bits a second.
[[nodiscard]] std::optional<double> infiniband_rate(std::string_view text);
// Ports of cards; virtual interfaces (bridges, veth, tunnels) are left out.
[[nodiscard]] std::vector<Nic> read_nics(const HostFiles& files);
// Fills nics and gpu_direct, and says why where there is none.
void add_nics(const HostFiles& files, Inventory& inventory);

}  // namespace gridctl::probe
