// SPDX-License-Identifier: Apache-2.0
// The journal of a bag, read while the daemon writes it; and what its tasks have printed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cmd/bag_pace.hpp"
#include "cmd/context.hpp"
#include "control/follow/bag_results.hpp"

namespace gridctl::cmd {

using control::TaskEnded;

class BagReader : public control::BagResults {
 public:
  using BagResults::BagResults;
  // Tasks that have ended since the last call, in the order of the journal.
  [[nodiscard]] Result<std::vector<TaskEnded>> next();
  // The tasks that have ended since the last call, of those in `wanted` ("17,20-30"; nullopt: all of `count`).
  [[nodiscard]] Result<std::map<bag::Index, TaskEnded>> ended(std::uint64_t count, const std::optional<std::string>& wanted);
  [[nodiscard]] std::optional<BagPace::Forecast> forecast() const { return pace_.forecast(bag()); }
  // Gives what the task has printed; not_found while it is not here yet.
  [[nodiscard]] Result<std::string> output(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const;

 private:
  void seen(const bag::Record& record) override { pace_.take(record); }

  BagPace pace_;
};

// Writes it to standard output; false while it is not here yet, and then nothing was written.
[[nodiscard]] bool print_output(Context& context, const BagReader& reader, const TaskEnded& task);

}  // namespace gridctl::cmd
