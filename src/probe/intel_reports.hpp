// SPDX-License-Identifier: Apache-2.0
// Reads the reports of Intel's tool and driver beyond the list of GPUs.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {

// Reads one device from `xpu-smi discovery -d N -j`: units, clock, bus, ECC. "-1" means unknown there.
void read_xpu_facts(const nlohmann::json& device, Gpu& gpu);
// Reads `xpu-smi topology -m`, by the first tile of each device.
[[nodiscard]] std::vector<GpuLink> read_xpu_topology(std::string_view text, const std::vector<Gpu>& gpus);
// Reads frequencies, throttling and power limits from i915 or xe.
void complete_intel(const HostFiles& files, VendorReading& reading);

}  // namespace gridctl::probe
