// SPDX-License-Identifier: Apache-2.0
// Measures how busy GPUs are now. Because it is repeated beside jobs, it is the cheapest query of the vendor's tool.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/use.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// Lists GPUs by their uuid.
using GpuUses = std::vector<std::pair<std::string, GpuUse>>;

[[nodiscard]] ToolCall nvidia_use_call();
// Parses the answer. Pure. Unreadable rows are left out; missing figures stay empty.
[[nodiscard]] GpuUses read_nvidia_use(const ToolAnswer& answer);

}  // namespace gridctl::probe
