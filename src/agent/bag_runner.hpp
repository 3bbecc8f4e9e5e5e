// SPDX-License-Identifier: Apache-2.0
// Implements `gridctl-agent tasks`: runs the tasks of one bag's worker, as a child of the job's first process and in
// its place. It depends on no other process: orders arrive through a file, results and output go to files, and the
// agent hands them over.
#pragma once

#include "agent/init.hpp"
#include "base/result.hpp"
#include "wire/bag_spec.hpp"

namespace gridctl::agent {

inline constexpr const char* k_tasks_command = "tasks";

// Returns the exit status of this process. REQUIRES: no other thread.
[[nodiscard]] int run_bag(const InitPlan& plan);

}  // namespace gridctl::agent
