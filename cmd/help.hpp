// SPDX-License-Identifier: Apache-2.0
// The commands' data as help and as manual pages. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/command.hpp"

namespace gridctl::cmd {

// Returns the width of help on a terminal so wide (0: unknown, 80): lines longer than 100 are hard to read.
[[nodiscard]] std::size_t help_width(std::size_t columns);
[[nodiscard]] std::string help_of(const Command& command, std::size_t columns);
[[nodiscard]] std::string help_of_noun(std::string_view noun, std::size_t columns);
// Returns the first commands to type, on one screen.
[[nodiscard]] std::string help_in_short(std::size_t columns);
[[nodiscard]] std::string help_of_all(std::size_t columns);
// "-n, --name NAME"
[[nodiscard]] std::string option_text(const Option& option);
// "gridctl job submit FILE.yaml [options]", without the program's options listed.
[[nodiscard]] std::string synopsis(const Command& command);

// Manual pages: file name and roff text, for man/.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> manual_pages();
// gridctl-query(7) without its heading.
[[nodiscard]] std::string query_page_body();
// gridctl-agents(7) without its heading.
[[nodiscard]] std::string agents_page_body();
// A page of section 7 as plain text: "agents", "training", "query", "exit-codes"; nothing when there is none of that name.
[[nodiscard]] std::optional<std::string> help_of_topic(std::string_view topic, std::size_t columns);
// gridctl-training(7) without its heading. Every number in it is the planner's.
[[nodiscard]] std::string training_page_body();

}  // namespace gridctl::cmd
