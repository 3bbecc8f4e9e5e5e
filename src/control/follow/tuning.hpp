// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a job's checkpoints so far. Pure.
#pragma once

#include <vector>

#include "registry/records.hpp"
#include "sched/interval.hpp"

namespace gridctl::control {

// Uses medians over the kept checkpoints of this and earlier attempts. A restart takes `lost_after` (the longest that a
// loss stays unnoticed) plus the start time on that host, by its figures.
[[nodiscard]] sched::CheckpointCost measured_cost(const std::vector<registry::Checkpoint>& checkpoints,
                                                  const registry::Provider& host, Duration lost_after);

}  // namespace gridctl::control
