// SPDX-License-Identifier: Apache-2.0
// Whether a host over a line by hand waits for an answer: each poll is answered once.
#pragma once

#include <algorithm>
#include <map>

#include "hand_world.hpp"

namespace gridctl::control::testing {

class NewPolls {
 public:
  [[nodiscard]] bool came(const HandLine& line) {
    const std::vector<std::string> asked = line.all_asked();
    const auto polls = std::count(asked.begin(), asked.end(), "poll");
    return std::exchange(seen_[&line], polls) != polls;
  }

 private:
  std::map<const HandLine*, std::ptrdiff_t> seen_;
};

}  // namespace gridctl::control::testing
