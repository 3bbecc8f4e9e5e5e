// SPDX-License-Identifier: Apache-2.0
#include "bag/ranges.hpp"

#include <algorithm>
#include <iterator>

#include "base/numbers.hpp"

namespace gridctl::bag {

void Ranges::add(Range range) {
  if (range.count == 0) return;
  Index first = range.first, end = range.end();
  auto at = ends_.upper_bound(first);
  if (at != ends_.begin() && std::prev(at)->second >= first) --at;
  while (at != ends_.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    count_ -= at->second - at->first;
    at = ends_.erase(at);
  }
  ends_.emplace(first, end);
  count_ += end - first;
}

void Ranges::erase(Range range) {
  if (range.count == 0) return;
  auto at = ends_.upper_bound(range.first);
  if (at != ends_.begin() && std::prev(at)->second > range.first) --at;
  while (at != ends_.end() && at->first < range.end()) {
    const auto [first, end] = *at;
    at = ends_.erase(at);
    count_ -= end - first;
    if (first < range.first) {
      ends_.emplace(first, range.first);
      count_ += range.first - first;
    }
    if (end > range.end()) {
      ends_.emplace(range.end(), end);
      count_ += end - range.end();
    }
  }
}

bool Ranges::contains(Index index) const {
  const auto after = ends_.upper_bound(index);
  return after != ends_.begin() && std::prev(after)->second > index;
}

std::vector<Range> Ranges::head(std::uint64_t count) const {
  std::vector<Range> out;
  for (auto at = ends_.begin(); at != ends_.end() && count > 0; ++at) {
    out.push_back({at->first, std::min(count, at->second - at->first)});
    count -= out.back().count;
  }
  return out;
}

std::vector<Range> Ranges::tail(std::uint64_t count) const {
  std::vector<Range> out;
  for (auto at = ends_.rbegin(); at != ends_.rend() && count > 0; ++at) {
    const std::uint64_t taken = std::min(count, at->second - at->first);
    out.insert(out.begin(), {at->second - taken, taken});
    count -= taken;
  }
  return out;
}

std::string to_text(const std::vector<Range>& ranges, std::size_t ranges_max) {
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i >= ranges_max) return text + ",…";
    text += (text.empty() ? "" : ",") + std::to_string(ranges[i].first);
    if (ranges[i].count > 1) text += "-" + std::to_string(ranges[i].end() - 1);
  }
  return text;
}

Result<Ranges> parse_ranges(std::string_view text, std::uint64_t limit) {
  Ranges out;
  const auto refused = [&](const std::string& why) {
    return make_error(Code::usage, why + ": expected indices below " + std::to_string(limit) + " such as 17,20-30");
  };
  do {
    const auto first = take_number<Index>(text);
    std::optional<Index> last = first;
    if (first && text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number<Index>(text);
    }
    if (!first || !last) return refused("the list of tasks cannot be read");
    if (*last < *first || *last >= limit) return refused("the list names tasks that are not there");
    out.add({*first, *last - *first + 1});
    const bool more = text.starts_with(',');
    if (more) text.remove_prefix(1);
    else if (!text.empty()) return refused("the list of tasks cannot be read");
    if (!more) return out;
  } while (true);
}

}  // namespace gridctl::bag
