// SPDX-License-Identifier: Apache-2.0
// Renders the commands' data as help and as manual pages. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/command.hpp"

namespace gridctl::cmd {

// Returns the width of help on a terminal with this width (0: unknown, 80): lines longer than 100 are hard to read.
[[nodiscard]] std::size_t help_width(std::size_t columns);
[[nodiscard]] std::string help_of(const Command& command, std::size_t columns);
[[nodiscard]] std::string help_of_noun(std::string_view noun, std::size_t columns);
// Returns the first commands to type, on one screen.
[[nodiscard]] std::string help_in_short(std::size_t columns);
[[nodiscard]] std::string help_of_all(std::size_t columns);
// Returns text such as "-n, --name NAME".
[[nodiscard]] std::string option_text(const Option& option);
// Returns text such as "gridctl job submit FILE.yaml [options]", without listing the program's options.
[[nodiscard]] std::string synopsis(const Command& command);

// Returns the text with what roff would read as its own escaped.
[[nodiscard]] std::string roff(std::string_view text);
// Returns manual pages: file name and roff text, for man/.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> manual_pages();
// Returns gridctl-query(7) without its heading.
[[nodiscard]] std::string query_page_body();
// Returns gridctl-agents(7) without its heading.
[[nodiscard]] std::string agents_page_body();
// Returns a page of section 7 as plain text: "agents", "training", "query", "exit-codes"; nothing if there is none with
// that name.
[[nodiscard]] std::optional<std::string> help_of_topic(std::string_view topic, std::size_t columns);
// Returns gridctl-training(7) without its heading. The planner computes every number in it.
[[nodiscard]] std::string training_page_body();

}  // namespace gridctl::cmd
