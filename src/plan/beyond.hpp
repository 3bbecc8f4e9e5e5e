// SPDX-License-Identifier: Apache-2.0
// Plans trainings that are not one parallelism on equal GPUs: machines of several speeds, and islands over a WAN. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace gridctl::plan {

// Divides the layers into contiguous stages so that the slowest stage is as fast as possible. `speeds` are relative;
// `most` is the number of layers that each stage's memory holds. nullopt: together they hold fewer. Every stage gets at
// least one layer if there are enough. REQUIRES: speeds.size() == most.size(), speeds > 0.
[[nodiscard]] std::optional<std::vector<int>> layers_by_speed(int layers, std::span<const double> speeds,
                                                              std::span<const int> most);

// Divides the sequences of a batch among replicas in proportion to their speed; the shares add up to the batch.
[[nodiscard]] std::vector<int> batch_by_speed(int batch, std::span<const double> speeds);

// Describes islands that train separately and average their parameters every H steps (DiLoCo; theory C10, C11).
struct Wan {
  double bytes_per_s = 0;  // of the slowest island's uplink
  double step_s = 0;       // inside an island
  double params = 0;
  double bytes_per_param = 4;  // what is sent of each: 4 fp32, 2 bf16, 1 int8
};
struct WanPlan {
  int inner_steps = 0;     // H
  double sync_s = 0;       // one exchange
  double utilisation = 0;  // 0..1
  double payload = 0;      // bytes each island sends
};
inline constexpr int k_inner_steps_max = 500;  // more was not published to converge as well
inline constexpr double k_utilisation_min = 0.8;
[[nodiscard]] WanPlan exchange(const Wan& wan, int inner_steps);
// Returns the least H, of 1, 10, 20, 50, 100, 200 and 500, at which four fifths of the time are computing. Refused with
// the numbers, and with the largest model that this link could keep in step.
[[nodiscard]] Result<WanPlan> plan_wan(const Wan& wan);

}  // namespace gridctl::plan
