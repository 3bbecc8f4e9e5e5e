// SPDX-License-Identifier: Apache-2.0
// Maps words from other tools (SkyPilot, Slurm, dstack, Vast.ai, kubectl, docker) to ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cmd/command.hpp"

namespace gridctl::cmd {

// Returns the command that this noun and verb mean, including other words for the verb: "ls" for "list".
[[nodiscard]] const Command* command_by_habit(std::string_view noun, std::string_view verb);

// Returns the command to type instead of a first word that is not one of our nouns. `arguments`: everything typed.
[[nodiscard]] std::optional<Error> foreign_command(const std::vector<std::string>& arguments);
// Returns how to write another tool's option here. Empty: not known.
[[nodiscard]] std::string foreign_option(const Command& command, std::string_view option);
// Handles `job submit python3 train.py`, where "--" is missing before the command.
[[nodiscard]] std::optional<Error> missing_dashes(const Command& command, const Parsed& parsed,
                                                  const std::vector<std::string>& arguments);

}  // namespace gridctl::cmd
