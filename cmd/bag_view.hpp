// SPDX-License-Identifier: Apache-2.0
// Shows for commands what a bag's journal says now.
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
// Returns nullopt if it is not a bag, or its journal cannot be read.
[[nodiscard]] std::optional<bag::Progress> bag_progress(const control::Paths& paths, const JobId& id);
// Returns text such as "120 of 200 tasks done (61 %), 3 failed".
[[nodiscard]] std::string progress_in_words(const bag::Progress& now);
// Returns lines for `job show`: progress, failures with their reasons, a row for each host.
[[nodiscard]] std::vector<std::string> bag_in_words(const BagSeen& seen);
[[nodiscard]] std::string bag_json(const bag::Bag& bag);
// Returns {"total","done","failed","running","executions"}, and for a running bag also "tasks_per_s" and "left_s".
[[nodiscard]] std::string tasks_json(const BagSeen& seen);
// Failed tasks run again when the job is resumed, and so does its last step. usage if nothing is left to run.
[[nodiscard]] Result<void> resume_bag(const control::Paths& paths, const registry::Job& job);

}  // namespace gridctl::cmd
