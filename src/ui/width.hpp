// SPDX-License-Identifier: Apache-2.0
// Measures the width of text on a terminal. Pure; a small table of wide and zero-width characters, no locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::ui {

// Returns the columns of `text`: 2 for East Asian wide characters and emoji, 0 for combining marks, 1 for each byte of
// invalid UTF-8. REQUIRES: no escape sequences in it.
[[nodiscard]] std::size_t display_width(std::string_view text);
// Cuts the text to at most `columns`; its last character is an ellipsis if something was cut.
[[nodiscard]] std::string truncate(std::string_view text, std::size_t columns);
// Fills the text with spaces up to `columns`.
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t columns);
// Returns lines of at most `columns`, broken at spaces; a longer word has its own line. Newlines in it are kept.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t columns);

}  // namespace gridctl::ui
