// SPDX-License-Identifier: Apache-2.0
// Reads the reports of AMD's tools and driver beyond the list of GPUs.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {

// Accepts {"value": 16, "unit": "GT/s"}, "300 W", 300; nullopt for "N/A".
[[nodiscard]] std::optional<double> amd_number(const nlohmann::json& value);
// Reads one entry of `amd-smi static`: units, limits, bus, ECC, partition.
void read_amd_static(const nlohmann::json& entry, Gpu& gpu);
// Reads `amd-smi metric --json`: current clocks, power, heat, throttling and bus.
void read_amd_metric(std::string_view text, std::vector<Gpu>& gpus);
// Reads `amd-smi topology --json`, or `rocm-smi --showtopotype --json`: xGMI links; PCIe paths are left to the bus.
[[nodiscard]] std::vector<GpuLink> read_amd_topology(std::string_view text, const std::vector<Gpu>& gpus);
[[nodiscard]] std::vector<GpuLink> read_rocm_topology(std::string_view text, const std::vector<Gpu>& gpus);

// Adds the values of the kernel's amdgpu and amdkfd: all of a GPU if no tool is installed, otherwise the missing ones.
void complete_amd(const HostFiles& files, VendorReading& reading);

}  // namespace gridctl::probe
