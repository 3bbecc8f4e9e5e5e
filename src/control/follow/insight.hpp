// SPDX-License-Identifier: Apache-2.0
// Looks into a running attempt, each time over its own connection: for threads of an os::Executor.
#pragma once

#include <string>

#include "control/copies/world.hpp"
#include "wire/insight.hpp"

namespace gridctl::control {

// Returns the stacks of the attempt's processes on that host: foreign text of at most wire::k_stacks_bytes_max.
[[nodiscard]] Result<std::string> stacks_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch);
// Returns the first of these lines, which say the most, or why there are none: for the job's history.
[[nodiscard]] std::string stack_lines(const Result<std::string>& stacks);
// Returns the steps that its ranks reported last. Fetches rank 0's new lines of $GRIDCTL_METRICS, up to 64 MiB in all.
[[nodiscard]] Result<void> fetch_metrics(const World& world, const HostReach& host, const JobId& job, Epoch epoch,
                                         AttemptNumber attempt);
[[nodiscard]] Result<wire::StepsReply> steps_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch);

}  // namespace gridctl::control
