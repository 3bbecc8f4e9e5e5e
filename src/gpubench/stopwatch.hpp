// SPDX-License-Identifier: Apache-2.0
// Timing of queued work, and of repeating it until its time is steady.
#pragma once

#include <functional>

#include "gpubench/device.hpp"

namespace gridctl::gpubench {

using Work = std::function<Result<void>()>;  // queues something

// Seconds until `work` has been queued and done.
[[nodiscard]] Result<double> time_of(Device& device, const Work& work);
// Repeats it until three times in a row lie within 2 % of each other, or `limit` has passed: clocks have settled. The
// last time.
[[nodiscard]] Result<double> settle(Device& device, const Work& work, double limit_seconds);
// The shortest of the times within `limit` seconds; at least three are taken.
[[nodiscard]] Result<double> best_of(Device& device, const Work& work, double limit_seconds);
[[nodiscard]] double now_seconds();

}  // namespace gridctl::gpubench
