// SPDX-License-Identifier: Apache-2.0
// Holds figures that a job reports about itself.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace gridctl {

// Maps "eval_loss" -> 0.31. Finite.
using Metrics = std::map<std::string, double>;
inline constexpr std::size_t k_metrics_max = 64;  // names that are kept of one job

// [A-Za-z0-9_.:/-]{1,64}
[[nodiscard]] bool is_metric_name(std::string_view name);

}  // namespace gridctl
