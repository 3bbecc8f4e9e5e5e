// SPDX-License-Identifier: Apache-2.0
// Looks into a running attempt: where its processes are, and which steps its ranks have reported. Feature word "gangs"
// of the agent; gridctl-agent(7), GANGS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "wire/messages.hpp"

namespace gridctl::wire {

// Requests stacks: reply {}, one data frame of text, end.
inline constexpr std::string_view k_stacks_operation = "stacks";
inline constexpr std::size_t k_stacks_bytes_max = 512 * 1024;
struct StacksRequest {
  JobId job;
  Epoch epoch;
};

// Requests steps: the last lines of $GRIDCTL_METRICS, oldest first.
inline constexpr std::string_view k_steps_operation = "steps";
inline constexpr std::size_t k_steps_max = 1024;
struct StepsRequest {
  JobId job;
  Epoch epoch;
};
struct ToldStep {
  std::uint32_t rank = 0;
  std::int64_t step = 0;
  std::optional<double> step_s{};  // that it computed
  bool operator==(const ToldStep&) const = default;
};

// Requests metrics: bytes of $GRIDCTL_METRICS as the newest launch of the attempt wrote it, answered like `log`. An
// older agent answers `unsupported`.
inline constexpr std::string_view k_metrics_operation = "metrics";

struct StepsReply {
  std::vector<ToldStep> steps;
  std::uint64_t log_bytes = 0;  // offset of the log's end
};

GRIDCTL_MESSAGE(StacksRequest, parse_stacks)
GRIDCTL_MESSAGE(StepsRequest, parse_steps)
GRIDCTL_MESSAGE(StepsReply, parse_steps_reply)
[[nodiscard]] std::string encode_metrics(const LogRequest&);
[[nodiscard]] Result<LogRequest> parse_metrics_request(std::string_view);

}  // namespace gridctl::wire
