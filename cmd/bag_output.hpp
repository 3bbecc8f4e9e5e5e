// SPDX-License-Identifier: Apache-2.0
// Prints the output of a bag's tasks: at once in the order of the tasks, or as they end.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cmd/bag_reader.hpp"
#include "cmd/context.hpp"
#include "cmd/follow.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// Prints the output of the named tasks, or of all that have ended so far.
[[nodiscard]] Result<int> print_task_output(Context& context, const registry::Job& job,
                                            const std::optional<std::string>& tasks);

class BagPrinter {
 public:
  BagPrinter(Context& context, const registry::Job& job, const WatchOptions& how);
  [[nodiscard]] Result<void> begin(const JobId& id);
  // Returns true if no more output is expected from a bag that is `final`. `before` is called before anything is
  // printed.
  [[nodiscard]] Result<bool> print_new(bool final, const std::function<void()>& before);
  [[nodiscard]] std::string progress() const;  // "122 of 200 tasks (61 %)"

 private:
  [[nodiscard]] std::string item_of(const TaskEnded& task) const;
  Result<bool> show(const TaskEnded& task);

  Context* context_;
  BagReader reader_;
  job::Spec spec_;
  WatchOptions how_;
  std::vector<std::string> items_;
  os::Fd joblog_;
  std::map<std::uint64_t, TaskEnded> waiting_;  // by index, or in the order in which they ended
  std::uint64_t order_ = 0, next_ = 0;
  std::optional<BootTime> final_since_;
  bool first_ = true;
};

}  // namespace gridctl::cmd
