// SPDX-License-Identifier: Apache-2.0
// Reads the tasks of a bag from what users write: numbers, files of items, matrices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/job_file.hpp"

namespace gridctl::config {

inline constexpr std::size_t k_item_bytes_max = 64 * 1024;  // as one variable of a task

struct Items {
  job::ItemForm form = job::ItemForm::none;
  std::string texts{};  // each with a NUL behind it
  std::uint64_t count = 0;
};
// Each item consists of this many lines. Errors are Code::usage without a place.
[[nodiscard]] Result<Items> items_of_lines(const std::vector<std::string>& lines, std::size_t chunk = 1);

// Describes sbatch's --array.
struct ArraySpec {
  std::vector<std::int64_t> numbers;
  int at_once = 0;  // 0: no limit
};
inline constexpr const char* k_array_count_name = "SLURM_ARRAY_TASK_COUNT";  // of every array
// Errors say what was expected.
[[nodiscard]] Result<ArraySpec> parse_array(std::string_view text);
// Replaces an array that the job has.
[[nodiscard]] Result<void> set_array(const ArraySpec& array, ParsedJob& job);

// Parses "x2": how many times more a task gets after it ran out. Errors say what was expected.
[[nodiscard]] Result<double> parse_raise(std::string_view text);

[[nodiscard]] std::string resolve_beside(const std::string& path, const std::string& base);

}  // namespace gridctl::config
