// SPDX-License-Identifier: Apache-2.0
// Translates complete lines of Slurm, SkyPilot, dstack, Vast.ai, kubectl and docker into our words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gridctl::cmd {

// `words`: what was typed after gridctl, from the first unknown word on. Returns the line to type instead, or empty.
// `of_a_tool`: the tool's own name came before it.
[[nodiscard]] std::string said_here(const std::vector<std::string>& words, bool of_a_tool = false);

// Matches "sky", "kubectl", "docker"…
[[nodiscard]] bool is_other_tool(std::string_view word);

}  // namespace gridctl::cmd
