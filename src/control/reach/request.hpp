// SPDX-License-Identifier: Apache-2.0
// One request of a worker's and its one reply, on a connection that nobody else uses.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "wire/frame.hpp"

namespace gridctl::control {

// The look at a host's health may be given up, and the connection used on: of its stream alone a reply may come late.
inline constexpr std::uint32_t k_health_stream = 900;

// The reply's payload; an error that the agent sent is returned as that error. Events and a late look are
// passed over; an event on this stream tells that the host is at work: `on_event` gives the new deadline.
[[nodiscard]] Result<std::string> ask(wire::Link& link, std::uint32_t stream, std::string payload, BootTime deadline,
                                      const std::function<BootTime()>& on_event = {});

}  // namespace gridctl::control
