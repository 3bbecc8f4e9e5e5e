// SPDX-License-Identifier: Apache-2.0
// The process that serves researchers starts with the machine again, without root.
#pragma once

#include <string>

#include "base/result.hpp"

namespace gridctl::lend {

// Says in words when it starts again: "with the machine (systemd)", "when you log in (systemd)", "with the machine
// (cron)". unsupported: neither systemd nor cron serves this user; the message says so.
[[nodiscard]] Result<std::string> start_at_boot();
// Takes that back; true if there was something.
bool forget_boot();

}  // namespace gridctl::lend
