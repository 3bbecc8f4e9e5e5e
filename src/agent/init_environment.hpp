// SPDX-License-Identifier: Apache-2.0
// What the job's processes see, from files in the run folder. Assignments "NAME=value"; later ones win.
#pragma once

#include <string>
#include <vector>

#include "agent/init.hpp"

namespace gridctl::agent {

// Ours, what `env` adds, and the secrets.
[[nodiscard]] std::vector<std::string> load_environment(const InitPlan& plan);
// A label for each rank of this host; empty where there are no ranks.
[[nodiscard]] std::vector<std::string> rank_labels(const InitPlan& plan);
// The same for one of them: the job's secrets win over what a launcher sets.
[[nodiscard]] std::vector<std::string> rank_environment(const InitPlan& plan, std::vector<std::string> environment,
                                                        std::size_t rank);

}  // namespace gridctl::agent
