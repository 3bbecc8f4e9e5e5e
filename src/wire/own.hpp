// SPDX-License-Identifier: Apache-2.0
// Lets a host use its own snapshots of a job instead of receiving the same bytes again: gridctl-agent(7), BULK.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
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

[[nodiscard]] std::string encode(const HaveForJob& request);
[[nodiscard]] std::string encode(const KeepRequest& request);
[[nodiscard]] Result<HaveForJob> parse_have_for_job(std::string_view text);
[[nodiscard]] Result<KeepRequest> parse_keep(std::string_view text);

}  // namespace gridctl::wire
