// SPDX-License-Identifier: Apache-2.0
// Splits names of GPUs into words. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::sched {

[[nodiscard]] bool contains(const auto& list, const auto& word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// Returns 80 for "80gb", "80g", "80gib"; at most four digits.
[[nodiscard]] std::optional<double> gigabytes(std::string_view word);
// Returns lower-case words of letters and digits; "(R)" and "(TM)" are blanks, "16 GB" is one word. At most `max` bytes
// count.
[[nodiscard]] std::vector<std::string> words_of(std::string_view name, std::size_t max);

}  // namespace gridctl::sched
