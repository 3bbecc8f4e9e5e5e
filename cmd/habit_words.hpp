// SPDX-License-Identifier: Apache-2.0
// Whole lines of Slurm, SkyPilot, dstack, Vast.ai, kubectl and docker, said in our words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gridctl::cmd {

// `words`: what was typed after gridctl, from the word that is none of ours on. The line to type instead, or empty.
// `of_a_tool`: the tool's own name stood before it.
[[nodiscard]] std::string said_here(const std::vector<std::string>& words, bool of_a_tool = false);

// "sky", "kubectl", "docker"…
[[nodiscard]] bool is_other_tool(std::string_view word);

}  // namespace gridctl::cmd
