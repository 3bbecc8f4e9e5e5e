// SPDX-License-Identifier: Apache-2.0
// Lets a host use its own snapshots of a job instead of receiving the same bytes again: gridctl-agent(7), BULK.
#pragma once

#include <string>
#include <string_view>

#include "wire/messages.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_keep_operation = "keep";

// A "have" that names a job: chunks in the host's snapshots of that job count as present. An older agent ignores the
// job.
struct HaveForJob : HaveRequest {
  JobId job;  // empty: none
};

// Makes the newest snapshots of an ended attempt outlive its folder, for k_kept_life (agent/own_snapshots.hpp); with
// epoch 0, removes the job's kept ones. An older agent answers `unsupported`.
struct KeepRequest {
  JobId job;
  Epoch epoch;
  bool operator==(const KeepRequest&) const = default;
};

GRIDCTL_MESSAGE(HaveForJob, parse_have_for_job)
GRIDCTL_MESSAGE(KeepRequest, parse_keep)

}  // namespace gridctl::wire
