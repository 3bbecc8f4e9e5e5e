// SPDX-License-Identifier: Apache-2.0
// Parses instants as people type them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::cmd {

// Accepts "18:00" (the next one on this machine's clock), "+4h", "2026-11-28T18:00:00Z", or "none". Fails with usage
// for another word, or for an instant that has passed. `option` is for that message.
[[nodiscard]] Result<std::optional<WallTime>> moment_typed(std::string_view option, const std::string& text, WallTime now);

}  // namespace gridctl::cmd
