// SPDX-License-Identifier: Apache-2.0
// Reads the reports of nvidia-smi beyond the list of GPUs. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// Holds one MIG device from -q -x: only SMs and memory, no uuid.
struct MigDetails {
  int gpu = 0, device = 0;  // the tool's indexes
  std::uint32_t units = 0;
  std::uint64_t memory_bytes = 0;
};

// Reads `nvidia-smi -q -x`: clocks, power, heat, PCIe, ECC, MIG, throttling of the GPUs by uuid; missing values become
// gaps. Returns the MIG devices.
std::vector<MigDetails> read_nvidia_xml(const ToolAnswer& answer, std::vector<Gpu>& gpus);
// Returns "cuda_version" of the same report, or an empty text.
[[nodiscard]] std::string cuda_of_xml(std::string_view text);
// Reads `--query-gpu=uuid,compute_cap`: "GPU-…, 9.0" becomes sm_90.
void read_compute_capability(const ToolAnswer& answer, std::vector<Gpu>& gpus);
// Reads `nvidia-smi nvlink -s`: active links of each GPU and the rate of one.
void read_nvlinks(const ToolAnswer& answer, std::vector<Gpu>& gpus);
// Reads `nvidia-smi topo -m`: the upper half of the matrix between GPUs; positions are those of `gpus` by their index.
[[nodiscard]] std::vector<GpuLink> read_nvidia_topology(std::string_view text, const std::vector<Gpu>& gpus);

}  // namespace gridctl::probe
