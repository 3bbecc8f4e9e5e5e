// SPDX-License-Identifier: Apache-2.0
// Times queued work, and repeats it until its time is steady.
#pragma once

#include <functional>

#include "gpubench/device.hpp"

namespace gridctl::gpubench {

using Work = std::function<Result<void>()>;  // queues something

// Returns the seconds until `work` has been queued and done.
[[nodiscard]] Result<double> time_of(Device& device, const Work& work);
// Repeats the work until three times in a row lie within 2 % of each other, which shows that the clocks have settled,
// or until `limit` has passed. Returns the last time.
[[nodiscard]] Result<double> settle(Device& device, const Work& work, double limit_seconds);
// Returns the shortest of the times within `limit` seconds; at least three are taken.
[[nodiscard]] Result<double> best_of(Device& device, const Work& work, double limit_seconds);
[[nodiscard]] double now_seconds();

}  // namespace gridctl::gpubench
