// SPDX-License-Identifier: Apache-2.0
// Describes the last step of a bag (`finally`). The job's own specification says whether its attempts run that or
// tasks: by a variable that the daemon sets for it, and no user may.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "job/spec.hpp"

namespace gridctl::job {

inline constexpr const char* k_tasks_done_name = "GRIDCTL_TASKS_DONE";
inline constexpr const char* k_tasks_failed_name = "GRIDCTL_TASKS_FAILED";
inline constexpr const char* k_tasks_failed_list_name = "GRIDCTL_TASKS_FAILED_LIST";
inline constexpr const char* k_tasks_role = "tasks";  // of the input that a last step has instead of the working directory

[[nodiscard]] inline bool is_last_step(const Spec& spec) { return spec.tasks && spec.envs.contains(k_tasks_done_name); }
// Returns whether attempts of the job run tasks of a bag.
[[nodiscard]] inline bool works_on_tasks(const Spec& spec) { return spec.tasks && !is_last_step(spec); }
// Returns the job with the resources of a worker of this level.
[[nodiscard]] inline Spec at_level(Spec spec, std::uint64_t level) {
  if (!spec.tasks || spec.tasks->raise.level == level) return spec;
  Raise& raise = spec.tasks->raise;
  if (raise.level == 0) std::tie(raise.memory_bytes, raise.disk_bytes) = std::pair(spec.resources.memory_bytes, spec.resources.disk_bytes);
  const auto times = [&](std::uint64_t bytes, double factor) {
    return static_cast<std::uint64_t>(std::min(static_cast<double>(bytes) * std::pow(std::max(factor, 1.0), static_cast<double>(level)), 0x1p60));
  };
  raise.level = level;
  spec.resources.memory_bytes = times(raise.memory_bytes, raise.memory);
  spec.resources.disk_bytes = times(raise.disk_bytes, raise.disk);
  return spec;
}
// Returns the job as its user described it.
[[nodiscard]] inline Spec without_last_step(Spec spec) {
  for (const char* name : {k_tasks_done_name, k_tasks_failed_name, k_tasks_failed_list_name}) spec.envs.erase(name);
  return at_level(std::move(spec), 0);
}

// Reason for which a bag leaves its host: its tasks are over, and its last step follows. Nothing waits for the attempt.
inline constexpr std::string_view k_for_tasks = "tasks_over";

}  // namespace gridctl::job
