// SPDX-License-Identifier: Apache-2.0
// Tracks which tasks a bag's worker still has to start. Pure: orders in, tasks out, first granted first started.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wire/bag.hpp"

namespace gridctl::agent {

struct BagTask {
  std::uint64_t index = 0;
  std::uint64_t order = 0;  // number of its grant
  std::optional<std::string> item;
};

class BagQueue {
 public:
  // Takes the next order by number. Tasks that it revokes are reported as results; so is a grant after a finish.
  [[nodiscard]] std::vector<wire::TaskResult> take(wire::BagOrder order);
  [[nodiscard]] std::optional<BagTask> next();
  // Makes the task the next one again.
  void put_back(const BagTask& task);
  // Returns everything that was not started.
  [[nodiscard]] std::vector<wire::TaskResult> take_back();

  [[nodiscard]] std::uint64_t orders() const { return orders_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool finished() const { return exit_code_.has_value(); }  // no more will be granted
  [[nodiscard]] int exit_code() const { return exit_code_.value_or(0); }

 private:
  struct Range {
    std::uint64_t first, count, order;
    std::shared_ptr<const std::vector<std::string>> items;  // nullptr: none
    std::size_t item = 0;                                   // that of `first`
  };
  [[nodiscard]] std::vector<wire::TaskResult> revoke(std::uint64_t first, std::uint64_t end);

  std::deque<Range> ranges_;
  std::uint64_t orders_ = 0, size_ = 0;
  std::optional<int> exit_code_;
};

}  // namespace gridctl::agent
