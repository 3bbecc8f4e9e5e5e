// SPDX-License-Identifier: Apache-2.0
// Reads `nvidia-smi -q -x`, the one call that reports everything about every GPU, in the same tags since 2015. Pure.
#pragma once

#include <vector>

#include "probe/tools.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

[[nodiscard]] ToolCall nvidia_health_call();
// Returns the reported GPUs, and those that only an error text names (their problem names it). If the driver reports
// none, the result is one nameless GPU with the error text.
[[nodiscard]] std::vector<wire::GpuHealth> read_nvidia_health(const ToolAnswer& answer);

}  // namespace gridctl::probe
