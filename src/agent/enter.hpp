// SPDX-License-Identifier: Apache-2.0
// A connection of the controller becomes a conversation of streams with a running attempt, or with the host's user.
#pragma once

#include <functional>
#include <optional>

#include "agent/attempt_dir.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Connects to the process inside the attempt, which has been told the ports that it may open. Without an attempt, to
// one that runs as this user.
[[nodiscard]] Result<os::Fd> enter(const std::optional<AttemptDir>& attempt);

// Passes bytes between the controller (`in`, `out`) and `inside` until one of them ends, or until `goes_on`, which is
// asked each second where it is given, says no.
void relay(int in, int out, os::Fd inside, const std::function<bool()>& goes_on = {});

}  // namespace gridctl::agent
