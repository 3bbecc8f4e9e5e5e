// SPDX-License-Identifier: Apache-2.0
// What a job tells in $GRIDCTL_METRICS: gridctl-job(5), METRICS. The file is the job's and not trusted.
#pragma once

#include <string>
#include <string_view>

#include "agent/attempt_dir.hpp"
#include "base/metrics.hpp"

namespace gridctl::agent {

// The newest number of each name in lines of JSON objects. Anything else in them is ignored, as is a last line without
// its end and what comes beyond k_metrics_max names.
[[nodiscard]] Metrics parse_metrics(std::string_view lines);
// The last 64 KiB of the file, from the first whole line; empty when there is none.
[[nodiscard]] std::string metrics_tail(const Path& run);
// The metrics in those.
[[nodiscard]] Metrics read_metrics(const Path& run);

}  // namespace gridctl::agent
