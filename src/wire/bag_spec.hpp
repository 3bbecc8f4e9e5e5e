// SPDX-License-Identifier: Apache-2.0
// Describes how a worker of a bag runs its tasks: a part of the attempt's specification; gridctl-agent(7), BAGS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace gridctl::wire {

enum class BagItems : std::uint8_t {
  text,       // the item is one text
  variables,  // lines NAME=VALUE, each a variable of the task
  columns,    // fields between bytes 1F
};

enum class BagMode : std::uint8_t {
  tasks,   // the command runs once for each task
  stream,  // the command stays up; an item is a line of its input, an answer a line of its output
};

struct BagSpec {
  std::uint32_t slots = 1;                       // tasks at once
  std::uint64_t count = 0;                       // GRIDCTL_TASK_COUNT; 0: it is not told
  Duration timeout{};                            // of one task; 0: none
  std::uint64_t output_bytes_max = 16ull << 20;  // kept of the output of one task
  std::uint64_t output_total_max = 1ull << 30;   // kept here while the controller does not have it
  bool split = false;                            // standard error is kept apart
  BagItems items = BagItems::text;
  bool render = false;                           // {} and its kin in the command stand for the item
  std::string stdin_from{};                      // k_stdin_item, or a path that may hold {}; empty: /dev/null
  bool folder = false;                           // each task has a folder of its own
  std::int64_t array_first = 0, array_step = 0;  // SLURM_ARRAY_TASK_ID = first + index * step; step 0: the index
  BagMode mode = BagMode::tasks;
  std::uint32_t window = 16;       // stream: items that one program has at once
  bool json = false;               // stream: items and answers carry "id"
  std::uint32_t max_restarts = 3;  // stream: in a row without an answer between them
  std::vector<std::string> outputs{};  // patterns of files that a task leaves; they are kept behind its output
  bool operator==(const BagSpec&) const = default;
};
inline constexpr std::string_view k_stdin_item = "item";

}  // namespace gridctl::wire
