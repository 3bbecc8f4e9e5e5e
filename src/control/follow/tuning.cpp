// SPDX-License-Identifier: Apache-2.0
#include "control/follow/tuning.hpp"

#include <algorithm>
#include <optional>

namespace gridctl::control {

namespace {
constexpr Duration k_start_assumed = std::chrono::seconds{30};   // until a start was seen on the host
constexpr Duration k_stall_min = std::chrono::milliseconds{10};  // looks are a second apart: nothing is free

std::optional<Duration> median(std::vector<Duration> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
}  // namespace

sched::CheckpointCost measured_cost(const std::vector<registry::Checkpoint>& checkpoints,
                                    const registry::Provider& host, Duration lost_after) {
  std::vector<Duration> stalls, uploads;
  for (const registry::Checkpoint& one : checkpoints) {
    if (one.stray) continue;  // fetched when the host came back, whenever that was
    if (one.stall) stalls.push_back(std::max(*one.stall, k_stall_min));
    if (one.upload) uploads.push_back(*one.upload);
  }
  sched::CheckpointCost cost;
  cost.stall = median(stalls).value_or(Duration{});
  cost.upload = median(uploads).value_or(Duration{});
  const auto start = host.figures.find("start_time");
  cost.restart = lost_after + (start == host.figures.end()
                                   ? k_start_assumed
                                   : std::chrono::milliseconds{static_cast<std::int64_t>(start->second * 1000)});
  return cost;
}

}  // namespace gridctl::control
