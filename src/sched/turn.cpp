// SPDX-License-Identifier: Apache-2.0
#include "sched/turn.hpp"

#include <algorithm>
#include <limits>

namespace gridctl::sched {

std::vector<Ending> in_order(std::vector<Ending> running) {
  std::ranges::stable_sort(running, [](const Ending& a, const Ending& b) {
    constexpr double k_last = std::numeric_limits<double>::infinity();
    return a.in.value_or(k_last) < b.in.value_or(k_last);
  });
  return running;
}

std::optional<std::size_t> needed_ends(const std::vector<Ending>& in_order,
                                       const std::function<bool(const std::set<std::string>&)>& fits) {
  const auto fits_without = [&](std::size_t count) {
    std::set<std::string> gone;
    for (std::size_t i = 0; i < count; ++i) gone.insert(in_order[i].job.value);
    return fits(gone);
  };
  std::size_t enough = in_order.size();
  if (!fits_without(enough)) return std::nullopt;
  for (std::size_t least = 0; least < enough;) {
    const std::size_t middle = least + (enough - least) / 2;
    if (fits_without(middle)) enough = middle;
    else least = middle + 1;
  }
  return enough;
}

}  // namespace gridctl::sched
