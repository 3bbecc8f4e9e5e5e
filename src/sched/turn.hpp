// SPDX-License-Identifier: Apache-2.0
// Computes when a job that waits for several hosts at once gets its turn. Backfill with a reservation: finds the fewest
// running jobs that have to end first, in the order of their expected ends. Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace gridctl::sched {

// Describes a job that runs now.
struct Ending {
  JobId job;
  std::optional<double> in;  // seconds from now; nullopt: nobody knows, or it should have ended already
};
// Sorts by the expected end, earliest first; jobs without a known end keep the given order.
[[nodiscard]] std::vector<Ending> in_order(std::vector<Ending> running);

// Returns how many of them have to end, in that order, until the job fits; nullopt: it would not fit if all had. `fits`
// is called with the ids of those that are gone, O(log n) times; once true, it stays true for more of them.
[[nodiscard]] std::optional<std::size_t> needed_ends(const std::vector<Ending>& in_order,
                                                     const std::function<bool(const std::set<std::string>&)>& fits);

}  // namespace gridctl::sched
