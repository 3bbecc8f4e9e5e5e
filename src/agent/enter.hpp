// SPDX-License-Identifier: Apache-2.0
// Turns a connection of the controller into a conversation of streams with a running attempt, or with the host's user.
#pragma once

#include <functional>
#include <optional>

#include "agent/attempt_dir.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Connects to the process inside the attempt, which knows the ports that it may open. Without an attempt, connects to
// one that runs as this user.
[[nodiscard]] Result<os::Fd> enter(const std::optional<AttemptDir>& attempt);

// Passes bytes between the controller (`in`, `out`) and `inside` until one of them ends, or until `goes_on`, called
// every second if given, returns false.
void relay(int in, int out, os::Fd inside, const std::function<bool()>& goes_on = {});

}  // namespace gridctl::agent
