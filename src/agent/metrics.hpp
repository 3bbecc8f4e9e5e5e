// SPDX-License-Identifier: Apache-2.0
// Reads a job's own figures in $GRIDCTL_METRICS: gridctl-job(5), RETENTION. The file belongs to the job and is not
// trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/attempt_dir.hpp"
#include "agent/log_ring.hpp"
#include "base/metrics.hpp"
#include "wire/insight.hpp"

namespace gridctl::agent {

inline constexpr std::size_t k_metrics_line_max = 8 * 1024;  // a longer line says nothing

// Returns the newest number of each name in lines of JSON objects. Ignores anything else in them, a last line without
// its end, and names beyond k_metrics_max.
[[nodiscard]] Metrics parse_metrics(std::string_view lines);
[[nodiscard]] std::uint64_t metrics_bytes(const Path& run);  // what it has told so far
// Returns the last 64 KiB of the file before `until`, from the first complete line; empty if there is none.
[[nodiscard]] std::string metrics_tail(const Path& run, std::uint64_t until = UINT64_MAX);
// Returns at most so many bytes from an offset: a slice as of a log that loses nothing.
[[nodiscard]] LogSlice metrics_from(const Path& run, std::uint64_t offset, std::uint32_t bytes_max);
// Returns the metrics in those bytes.
[[nodiscard]] Metrics read_metrics(const Path& run, std::uint64_t until = UINT64_MAX);

// Parses lines of JSON objects with "step", and perhaps "rank" (otherwise `rank`) and "step_s"; ignores others. Returns
// the newest wire::k_steps_max of them, oldest first.
[[nodiscard]] std::vector<wire::ToldStep> parse_steps(std::string_view lines, std::uint32_t rank);
// Reads the steps that the ranks of this host reported in the last 64 KiB of the file.
[[nodiscard]] Result<wire::StepsReply> steps_of(const AttemptDir& attempt);

}  // namespace gridctl::agent
