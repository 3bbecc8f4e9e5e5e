// SPDX-License-Identifier: Apache-2.0
// A job's own figures in $GRIDCTL_METRICS: gridctl-job(5), RETENTION. The file is the job's and not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/attempt_dir.hpp"
#include "agent/log_ring.hpp"
#include "base/metrics.hpp"

namespace gridctl::agent {

inline constexpr std::size_t k_metrics_line_max = 8 * 1024;  // a longer line says nothing

// The newest number of each name in lines of JSON objects. Anything else in them is ignored, as is a last line without
// its end and what comes beyond k_metrics_max names.
[[nodiscard]] Metrics parse_metrics(std::string_view lines);
[[nodiscard]] std::uint64_t metrics_bytes(const Path& run);  // what it has told so far
// The last 64 KiB of the file before `until`, from the first whole line; empty when there is none.
[[nodiscard]] std::string metrics_tail(const Path& run, std::uint64_t until = UINT64_MAX);
// From an offset, at most so many bytes: a slice as of a log that loses nothing.
[[nodiscard]] LogSlice metrics_from(const Path& run, std::uint64_t offset, std::uint32_t bytes_max);
// The metrics in those.
[[nodiscard]] Metrics read_metrics(const Path& run, std::uint64_t until = UINT64_MAX);

}  // namespace gridctl::agent
