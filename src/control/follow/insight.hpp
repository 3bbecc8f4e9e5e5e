// SPDX-License-Identifier: Apache-2.0
// Looks into an attempt that runs, each over a connection of its own: for threads of an os::Executor.
#pragma once

#include <string>

#include "control/copies/world.hpp"
#include "wire/insight.hpp"

namespace gridctl::control {

// Where the attempt's processes stand on that host: foreign text of at most wire::k_stacks_bytes_max.
[[nodiscard]] Result<std::string> stacks_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch);
// The steps that its ranks have told last.
// Brings here what rank 0 has told in $GRIDCTL_METRICS since it was asked last, up to 64 MiB in all.
[[nodiscard]] Result<void> fetch_metrics(const World& world, const HostReach& host, const JobId& job, Epoch epoch,
                                         AttemptNumber attempt);
[[nodiscard]] Result<wire::StepsReply> steps_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch);

}  // namespace gridctl::control
