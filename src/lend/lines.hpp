// SPDX-License-Identifier: Apache-2.0
// Reading and writing a channel that leads to a relay, before bytes pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "ssh/channel.hpp"

namespace gridctl::lend {

inline constexpr Duration k_turn = std::chrono::milliseconds{250};  // a channel may move on by a timer of its own

// The rest of the line behind `mark`, sanitised, once it is complete.
[[nodiscard]] std::optional<std::string> line_after(std::string_view text, std::string_view mark);
// All of it. timed_out at the deadline.
[[nodiscard]] Result<void> write_all(ssh::Channel& channel, std::string_view text, BootTime deadline, os::Clock& clock);
// Adds what comes next to `text`. False: nothing came until the deadline. host_unreachable at the end.
[[nodiscard]] Result<bool> read_more(ssh::Channel& channel, std::string& text, BootTime deadline, os::Clock& clock);

}  // namespace gridctl::lend
