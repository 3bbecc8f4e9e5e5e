// SPDX-License-Identifier: Apache-2.0
// Builds the environment of the job's processes from files in the run folder. Assignments are "NAME=value"; later ones
// win.
#pragma once

#include <string>
#include <vector>

#include "agent/init.hpp"

namespace gridctl::agent {

// Returns ours, the additions of `env`, and the secrets.
[[nodiscard]] std::vector<std::string> load_environment(const InitPlan& plan);
// Returns a label for each rank of this host; empty if there are no ranks.
[[nodiscard]] std::vector<std::string> rank_labels(const InitPlan& plan);
// Returns the environment of one rank: the job's secrets win over the launcher's variables.
[[nodiscard]] std::vector<std::string> rank_environment(const InitPlan& plan, std::vector<std::string> environment,
                                                        std::size_t rank);

}  // namespace gridctl::agent
