// SPDX-License-Identifier: Apache-2.0
// Handles text that is shown line by line, such as a program's output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gridctl {

// Works like sanitize(), but keeps '\n'; a '\r' before it is dropped. Only for callers that give each line its own
// place: at the start of a line, a host's words would pass for ours.
[[nodiscard]] std::string sanitize_lines(std::string_view text, std::size_t line_max = 4096);

}  // namespace gridctl
