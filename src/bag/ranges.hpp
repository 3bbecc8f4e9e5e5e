// SPDX-License-Identifier: Apache-2.0
// Holds a set of task indices as ranges: a million of them that follow each other are one entry.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::bag {

using Index = std::uint64_t;

struct Range {  // first, first + 1, …; never empty in a Ranges
  Index first = 0;
  std::uint64_t count = 0;
  [[nodiscard]] Index end() const { return first + count; }
  bool operator==(const Range&) const = default;
};

class Ranges {
 public:
  Ranges() = default;
  Ranges(std::initializer_list<Range> ranges) {
    for (const Range& range : ranges) add(range);
  }

  void add(Range range);
  void erase(Range range);
  [[nodiscard]] bool contains(Index index) const;
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] Index first() const { return ends_.begin()->first; }  // REQUIRES: not empty
  // Return the first `count` indices, or the last, or all; they stay in the set.
  [[nodiscard]] std::vector<Range> head(std::uint64_t count) const;
  [[nodiscard]] std::vector<Range> tail(std::uint64_t count) const;
  [[nodiscard]] std::vector<Range> list() const { return head(count_); }
  bool operator==(const Ranges&) const = default;

 private:
  std::map<Index, Index> ends_;  // by first index: one past the last; they neither overlap nor touch
  std::uint64_t count_ = 0;
};

// "17,20-30"; at most `ranges_max` of them, then "…".
[[nodiscard]] std::string to_text(const std::vector<Range>& ranges, std::size_t ranges_max = SIZE_MAX);
// Fails with usage if the text is not a list of ranges, or names an index of `limit` or more.
[[nodiscard]] Result<Ranges> parse_ranges(std::string_view text, std::uint64_t limit);

}  // namespace gridctl::bag
