// SPDX-License-Identifier: Apache-2.0
// Moves a running attempt off its GPUs and processors while its state stays in the host's memory, and resumes it:
// gridctl-agent(7), PAUSE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_pause_feature = "pause";
inline constexpr std::string_view k_pause_operation = "pause";
inline constexpr Duration k_pause_wait_max = std::chrono::minutes{15};  // what a host may take to answer

struct PauseRequest {
  OpId op;
  JobId job;
  Epoch epoch;
  bool resume = false;
  bool gpu_only = false;  // its processes run on as far as they can without a GPU
};
// The attempt is in the requested state, now or already before.
struct PauseReply {
  std::uint64_t gpu_bytes = 0;  // that left the GPUs, or came back
  Duration took{};
};

GRIDCTL_MESSAGE(PauseRequest, parse_pause)
GRIDCTL_MESSAGE(PauseReply, parse_pause_reply)

}  // namespace gridctl::wire
