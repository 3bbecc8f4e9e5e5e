// SPDX-License-Identifier: Apache-2.0
// `gridctl-agent tasks`: runs the tasks of one worker of a bag, as a child of the job's first process and in its place.
// It needs nobody: orders come through a file, results and output go to files, and the agent hands them over.
#pragma once

#include "agent/init.hpp"
#include "base/result.hpp"
#include "wire/bag_spec.hpp"

namespace gridctl::agent {

inline constexpr const char* k_tasks_command = "tasks";

// Returns the exit status of this process. REQUIRES: no other thread.
[[nodiscard]] int run_bag(const InitPlan& plan);

}  // namespace gridctl::agent
