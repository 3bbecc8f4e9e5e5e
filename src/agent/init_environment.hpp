// SPDX-License-Identifier: Apache-2.0
// The environment of the job's processes, from files in the run folder. Assignments "NAME=value"; later ones win.
#pragma once

#include <string>
#include <vector>

#include "agent/init.hpp"

namespace gridctl::agent {

// Ours, what `env` adds, and the secrets.
[[nodiscard]] std::vector<std::string> load_environment(const InitPlan& plan);
// A label for each rank of this host; empty where there are no ranks.
[[nodiscard]] std::vector<std::string> rank_labels(const InitPlan& plan);
// The environment of one rank: the job's secrets win over the launcher's variables.
[[nodiscard]] std::vector<std::string> rank_environment(const InitPlan& plan, std::vector<std::string> environment,
                                                        std::size_t rank);

}  // namespace gridctl::agent
