// SPDX-License-Identifier: Apache-2.0
// Where the processes of an attempt stand just now. Feature word "gangs" of the agent; gridctl-agent(7), GANGS.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace gridctl::wire {

// Reply {}, one data frame of text, end.
inline constexpr std::string_view k_stacks_operation = "stacks";
inline constexpr std::size_t k_stacks_bytes_max = 512 * 1024;
struct StacksRequest {
  JobId job;
  Epoch epoch;
};
[[nodiscard]] std::string encode(const StacksRequest&);
[[nodiscard]] Result<StacksRequest> parse_stacks(std::string_view);

}  // namespace gridctl::wire
