// SPDX-License-Identifier: Apache-2.0
// The rows of tests/data/ckpt_reference.csv: checkpointing under exponential failures. Seconds.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace gridctl::testing {

struct CheckpointCase {
  std::string name;
  double mtbf = 0, cost = 0, restart = 0, work = 0, interval = 0, expected = 0;
};

inline std::vector<CheckpointCase> checkpoint_cases() {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/ckpt_reference.csv");
  std::vector<CheckpointCase> cases;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto fields = split(line, ',');
    if (fields.size() < 12) continue;
    const auto number = [&](std::size_t i) { return std::stod(std::string(fields[i])); };
    cases.push_back({std::string(fields[0]), number(1), number(2), number(3), number(4), number(8), number(11)});
  }
  return cases;
}

}  // namespace gridctl::testing
