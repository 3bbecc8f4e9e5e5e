// SPDX-License-Identifier: Apache-2.0
// Completes the command line, the same for every shell: the shells' scripts only ask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmd/context.hpp"

namespace gridctl::cmd {

// `words`: the command line so far without the program's name; the last one is being typed (may be empty). Prints
// "candidate<TAB>description" lines; ":file" or ":directory" asks the shell for its own names. Never fails.
int complete(Context& context, const std::vector<std::string>& words);
// Returns the script that users source; empty for an unknown shell.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace gridctl::cmd
