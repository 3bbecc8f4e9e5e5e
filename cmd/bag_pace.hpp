// SPDX-License-Identifier: Apache-2.0
// Estimates how fast a bag progresses, by the last results of each worker, and when it will be done. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "bag/bag.hpp"

namespace gridctl::cmd {

class BagPace {
 public:
  void take(const bag::Record& record);

  struct Forecast {
    double tasks_per_s = 0;
    double left_s = 0, least_s = 0, most_s = 0;  // until the last task is done; with about 95 %
  };
  // Returns nullopt if no worker is running, or too little was seen of those that are.
  [[nodiscard]] std::optional<Forecast> forecast(const bag::Bag& bag) const;

 private:
  // Holds when the last tasks of a worker ended, in ms by its host's clock. All results of a bag pass through here at
  // each display.
  struct Ends {
    std::array<std::int64_t, 64> kept{};
    std::size_t seen = 0;
    [[nodiscard]] std::size_t size() const { return std::min(seen, kept.size()); }
    [[nodiscard]] std::int64_t operator[](std::size_t i) const { return kept[(seen - size() + i) % kept.size()]; }
    [[nodiscard]] std::int64_t back() const { return (*this)[size() - 1]; }
  };
  std::map<bag::Worker, Ends> ends_;
};

// Returns text such as "12.5 tasks/s, done in about 3 min (2 min to 5 min)".
[[nodiscard]] std::string in_words(const BagPace::Forecast& forecast);

}  // namespace gridctl::cmd
