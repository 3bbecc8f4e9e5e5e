// SPDX-License-Identifier: Apache-2.0
// Words that people bring along from other tools (SkyPilot, Slurm, dstack, Vast.ai, kubectl, docker), and ours for
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cmd/command.hpp"

namespace gridctl::cmd {

// The command that this noun and verb mean, also by another word for the verb: "ls" for "list".
[[nodiscard]] const Command* command_by_habit(std::string_view noun, std::string_view verb);

// A first word that is no noun of ours: what to type instead. `arguments`: all that was typed.
[[nodiscard]] std::optional<Error> foreign_command(const std::vector<std::string>& arguments);
// An option of another tool: how it is said here. Empty: not known.
[[nodiscard]] std::string foreign_option(const Command& command, std::string_view option);
// `job submit python3 train.py`: the command lacks its "--".
[[nodiscard]] std::optional<Error> missing_dashes(const Command& command, const Parsed& parsed,
                                                  const std::vector<std::string>& arguments);

}  // namespace gridctl::cmd
