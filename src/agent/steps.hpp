// SPDX-License-Identifier: Apache-2.0
// Reads the steps that the ranks of this host reported in $GRIDCTL_METRICS. The file belongs to the job and is not
// trusted.
#pragma once

#include <string_view>
#include <vector>

#include "agent/attempt_dir.hpp"
#include "wire/insight.hpp"

namespace gridctl::agent {

// Parses lines of JSON objects with "step", and perhaps "rank" (otherwise `rank`) and "step_s"; ignores others. Returns
// the newest wire::k_steps_max of them, oldest first.
[[nodiscard]] std::vector<wire::ToldStep> parse_steps(std::string_view lines, std::uint32_t rank);
// Reads the last 64 KiB of the file.
[[nodiscard]] Result<wire::StepsReply> steps_of(const AttemptDir& attempt);

}  // namespace gridctl::agent
