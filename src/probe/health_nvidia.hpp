// SPDX-License-Identifier: Apache-2.0
// `nvidia-smi -q -x`: the one call that tells everything of every GPU, in the same tags since 2015. Pure.
#pragma once

#include <vector>

#include "probe/tools.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

[[nodiscard]] ToolCall nvidia_health_call();
// GPUs as told, and those that only a complaint names (their problem says which). A driver that tells of none gives one
// nameless GPU with its complaint.
[[nodiscard]] std::vector<wire::GpuHealth> read_nvidia_health(const ToolAnswer& answer);

}  // namespace gridctl::probe
