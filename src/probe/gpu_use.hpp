// SPDX-License-Identifier: Apache-2.0
// How busy GPUs are now. Asked for again and again beside jobs, so it is the cheapest question of the vendor's tool.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/use.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// GPUs by their uuid.
using GpuUses = std::vector<std::pair<std::string, GpuUse>>;

[[nodiscard]] ToolCall nvidia_use_call();
// Pure. Rows that cannot be read are left out, figures that the tool does not tell stay empty.
[[nodiscard]] GpuUses read_nvidia_use(const ToolAnswer& answer);
// Returns what the kernel's drivers tell of GPUs by AMD (load, memory, temperature) and Intel (temperature, and only newer
// kernels), without any tool. An AMD GPU stands there by its unique id and by its PCI address: inventories have either.
[[nodiscard]] GpuUses kernel_gpu_use(const HostFiles& files);

}  // namespace gridctl::probe
