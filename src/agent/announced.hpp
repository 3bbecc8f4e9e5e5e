// SPDX-License-Identifier: Apache-2.0
// Finds ends of this machine that are known in advance: a shutdown that someone has scheduled (`shutdown +10`).
#pragma once

#include <optional>
#include <string_view>

#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// File in which logind stores a scheduled shutdown; everyone may read it.
inline constexpr const char* k_scheduled_shutdown = "/run/systemd/shutdown/scheduled";

// Returns when this machine goes down or reboots. nullopt: no shutdown is announced.
[[nodiscard]] std::optional<WallTime> announced_shutdown(const os::Path& file = k_scheduled_shutdown);
// Reads the text of that file. Pure.
[[nodiscard]] std::optional<WallTime> parse_scheduled_shutdown(std::string_view text);

}  // namespace gridctl::agent
