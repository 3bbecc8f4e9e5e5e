// SPDX-License-Identifier: Apache-2.0
// The steps that the ranks of this host have told in $GRIDCTL_METRICS. The file is the job's and not trusted.
#pragma once

#include <string_view>
#include <vector>

#include "agent/attempt_dir.hpp"
#include "wire/insight.hpp"

namespace gridctl::agent {

// Lines of JSON objects with "step", and perhaps "rank" (else `rank`) and "step_s"; others are ignored. The newest
// wire::k_steps_max of them, oldest first.
[[nodiscard]] std::vector<wire::ToldStep> parse_steps(std::string_view lines, std::uint32_t rank);
// of the file's last 64 KiB
[[nodiscard]] Result<wire::StepsReply> steps_of(const AttemptDir& attempt);

}  // namespace gridctl::agent
