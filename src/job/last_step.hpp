// SPDX-License-Identifier: Apache-2.0
// The last step of a bag (`finally`). The job's own specification says whether its attempts run that or tasks: by a
// variable that the daemon sets for it, and no user may.
#pragma once

#include <string_view>

#include "job/spec.hpp"

namespace gridctl::job {

inline constexpr const char* k_tasks_done_name = "GRIDCTL_TASKS_DONE";
inline constexpr const char* k_tasks_failed_name = "GRIDCTL_TASKS_FAILED";
inline constexpr const char* k_tasks_failed_list_name = "GRIDCTL_TASKS_FAILED_LIST";
inline constexpr const char* k_tasks_role = "tasks";  // of the input that a last step has instead of the working directory

[[nodiscard]] inline bool is_last_step(const Spec& spec) { return spec.tasks && spec.envs.contains(k_tasks_done_name); }
// The job as its user has described it.
[[nodiscard]] inline Spec without_last_step(Spec spec) {
  for (const char* name : {k_tasks_done_name, k_tasks_failed_name, k_tasks_failed_list_name}) spec.envs.erase(name);
  return spec;
}

// Why a bag leaves its host: its tasks are over, and its last step comes. Nothing of the attempt is waited for.
inline constexpr std::string_view k_for_tasks = "tasks_over";

}  // namespace gridctl::job
