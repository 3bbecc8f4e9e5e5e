// SPDX-License-Identifier: Apache-2.0
// Reads the journal of a bag while the daemon writes it, and the output of its tasks.
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
  // Returns the tasks that have ended since the last call, in the order of the journal.
  [[nodiscard]] Result<std::vector<TaskEnded>> next();
  // Returns the tasks that have ended since the last call, among those in `wanted` ("17,20-30"; nullopt: all of
  // `count`).
  [[nodiscard]] Result<std::map<bag::Index, TaskEnded>> ended(std::uint64_t count, const std::optional<std::string>& wanted);
  [[nodiscard]] std::optional<BagPace::Forecast> forecast() const { return pace_.forecast(bag()); }
  // Returns the output of the task; not_found while it is not here yet.
  [[nodiscard]] Result<std::string> output(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const;

 private:
  void seen(const bag::Record& record) override { pace_.take(record); }

  BagPace pace_;
};

// Writes it to standard output; returns false, and writes nothing, while it is not here yet.
[[nodiscard]] bool print_output(Context& context, const BagReader& reader, const TaskEnded& task);

}  // namespace gridctl::cmd
