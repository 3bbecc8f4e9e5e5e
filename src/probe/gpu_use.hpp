// SPDX-License-Identifier: Apache-2.0
// Measures how busy GPUs are now. Because it is repeated beside jobs, it is the cheapest query of the vendor's tool.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/use.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// Lists GPUs by their uuid.
using GpuUses = std::vector<std::pair<std::string, GpuUse>>;

[[nodiscard]] ToolCall nvidia_use_call();
// Parses the answer. Pure. Unreadable rows are left out; missing figures stay empty.
[[nodiscard]] GpuUses read_nvidia_use(const ToolAnswer& answer);
// Returns what the kernel's drivers tell of GPUs by AMD (load, memory, temperature) and Intel (temperature, and only newer
// kernels), without any tool. An AMD GPU stands there by its unique id and by its PCI address: inventories have either.
[[nodiscard]] GpuUses kernel_gpu_use(const HostFiles& files);

}  // namespace gridctl::probe
