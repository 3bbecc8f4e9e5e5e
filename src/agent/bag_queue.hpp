// SPDX-License-Identifier: Apache-2.0
// Which tasks a worker of a bag has still to begin. Pure: orders in, tasks out, first granted first begun.
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
  // The next order in number. Tasks that it takes back are told as results; a grant behind a finish is one of those.
  [[nodiscard]] std::vector<wire::TaskResult> take(wire::BagOrder order);
  [[nodiscard]] std::optional<BagTask> next();
  // It is the next one again.
  void put_back(const BagTask& task);
  // Everything that was not begun.
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
