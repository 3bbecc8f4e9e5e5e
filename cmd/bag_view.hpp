// SPDX-License-Identifier: Apache-2.0
// Commands tell of a bag what its journal says, read as it is now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bag/bag.hpp"
#include "cmd/bag_pace.hpp"
#include "control/reach/paths.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

struct BagSeen {
  bag::Bag bag;
  std::optional<BagPace::Forecast> forecast;
};
[[nodiscard]] Result<BagSeen> read_bag(const control::Paths& paths, const registry::Job& job);
// nullopt: it is no bag, or its journal cannot be read.
[[nodiscard]] std::optional<bag::Progress> bag_progress(const control::Paths& paths, const JobId& id);
// "61 %", "3 failed", "200 tasks"
[[nodiscard]] std::string progress_in_words(const bag::Progress& now);
// Lines for `job show`: progress, what failed and how, a row for each host.
[[nodiscard]] std::vector<std::string> bag_in_words(const BagSeen& seen);
[[nodiscard]] std::string bag_json(const bag::Bag& bag);
// {"total","done","failed","running","executions"}, and of one that goes on "tasks_per_s" and "left_s".
[[nodiscard]] std::string tasks_json(const BagSeen& seen);
// Tasks that failed are run again when the job is resumed, and so is its last step. usage when nothing is left to run.
[[nodiscard]] Result<void> resume_bag(const control::Paths& paths, const registry::Job& job);

}  // namespace gridctl::cmd
