// SPDX-License-Identifier: Apache-2.0
// The journal of a bag, read while the daemon writes it; and what its tasks have printed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bag/bag.hpp"
#include "cmd/bag_pace.hpp"
#include "cmd/context.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

// A task that is done, or has failed for good.
struct TaskEnded {
  bag::Index index = 0;
  bag::Worker worker;
  wire::TaskResult result;  // of the run that counts; empty when its worker died of it
  std::string host;
};

class BagReader {
 public:
  explicit BagReader(os::Path folder) : folder_(std::move(folder)) {}
  // Tasks that have ended since the last call, in the order of the journal.
  [[nodiscard]] Result<std::vector<TaskEnded>> next();
  // The tasks that have ended since the last call, of those in `wanted` ("17,20-30"; nullopt: all of `count`).
  [[nodiscard]] Result<std::map<bag::Index, TaskEnded>> ended(std::uint64_t count, const std::optional<std::string>& wanted);
  [[nodiscard]] const bag::Bag& bag() const { return bag_; }
  [[nodiscard]] std::optional<BagPace::Forecast> forecast() const { return pace_.forecast(bag_); }
  // Gives bytes of all that is kept of the task, which begin `from` bytes behind its offset; not_found as below.
  [[nodiscard]] Result<std::string> read(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const;
  // Gives what the task has printed; not_found while it is not here yet.
  [[nodiscard]] Result<std::string> output(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const;

 private:
  void take(const bag::Record& record, std::vector<TaskEnded>& ended);

  os::Path folder_;
  bag::Bag bag_;
  BagPace pace_;
  std::uint64_t at_ = 0;  // bytes of the journal that were read
};

// Writes it to standard output; false while it is not here yet, and then nothing was written.
[[nodiscard]] bool print_output(Context& context, const BagReader& reader, const TaskEnded& task);

}  // namespace gridctl::cmd
