// SPDX-License-Identifier: Apache-2.0
// Describes the tasks of a bag, as their user does. Workload::tasks has their number. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/time.hpp"

namespace gridctl::job {

inline constexpr int k_task_retries_max = 100, k_bag_workers_max = 512, k_stream_window_max = 1024;
inline constexpr int k_stream_window = 16;  // unless the user says otherwise
inline constexpr std::size_t k_task_columns_max = 64;

// Names the way in which the text of an item reaches its task.
enum class ItemForm : std::uint8_t {
  none,       // tasks have an index only
  text,       // GRIDCTL_TASK_ITEM
  variables,  // lines NAME=VALUE, each a variable of the task
  columns,    // fields with \x1f between them: {1}, {2}
};
inline constexpr Names<ItemForm, ItemForm::columns> item_form_name{"none", "text", "variables", "columns"};

// A task that runs out of memory or disk is retried by a worker with so many times more: its level says how often that
// was done.
struct Raise {
  double memory = 0, disk = 0;                         // factors, k_raise_min..k_raise_max; 0: as much as before
  std::uint64_t memory_bytes = 0, disk_bytes = 0;      // of `resources` at level 0, when the level is not 0
  std::uint64_t level = 0;                             // of this worker
  [[nodiscard]] bool any() const { return memory > 0 || disk > 0; }
  bool operator==(const Raise&) const = default;
};
inline constexpr double k_raise_min = 1.1, k_raise_max = 16;

struct Tasks {
  ItemForm items = ItemForm::none;  // the texts lie beside the job, one for each task
  std::int64_t array_first = 0;     // SLURM_ARRAY_TASK_ID of task 0
  std::int64_t array_step = 1;
  bool render = false;  // `{}` and its kin stand in `run`
  int retries = 1;      // of a task that failed, on another host if there is one; 0..k_task_retries_max
  Duration timeout{};   // of each task; 0: none
  int max_parallel = 0; // workers at once; 0: as many as there is room for
  std::optional<int> max_fails{};  // more failed tasks than this stop the bag; nullopt: none does
  std::string stdin_from{};        // "": nothing, "item": the item's text, else a path
  bool split = false;              // standard error is kept apart
  bool folder = false;             // each task has a directory of its own
  int stream_window = 0;           // > 0: the command stays up, and has so many items at once; 1..k_stream_window_max
  bool stream_json = false;        // items and answers of a stream carry "id"
  std::vector<std::string> outputs{};  // patterns of the files that each task leaves
  Raise raise{};
  std::string finally_run{};       // run once when all tasks are done; shell text
  bool operator==(const Tasks&) const = default;
};

}  // namespace gridctl::job
