// SPDX-License-Identifier: Apache-2.0
// What runs in the background on a lent machine: for each researcher one connection that waits for a call, and those
// that are in use.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "os/clock.hpp"

namespace gridctl::lend {

// Serves until `stop` says so, or until the machine is lent to nobody any more. state_in_use: another process serves.
// Each connection is a process of its own (`lend dial ID` of this program), which ends with this one.
[[nodiscard]] Result<void> serve(const std::function<bool()>& stop, os::Clock& clock);
// A process serves.
[[nodiscard]] bool is_serving();
// Starts it in the background if none does.
[[nodiscard]] Result<void> ensure_serving(os::Clock& clock);

}  // namespace gridctl::lend
