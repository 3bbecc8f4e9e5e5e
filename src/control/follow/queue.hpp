// SPDX-License-Identifier: Apache-2.0
// Decides the order in which waiting jobs are asked for a place. Pure.
//
// The highest priority comes first; among equals, the owner that holds least of the grid now, counting what the earlier
// jobs would get (fair share); for one owner, the job submitted first. A job that does not fit is skipped: smaller jobs
// run in the meantime (backfill).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"

namespace gridctl::control {

struct Waits {
  int priority = 0;
  std::string owner;  // empty: one owner of its own
  WallTime submitted_at;
  double load = 0;  // what it wants
};

// Returns the load in GPUs; eight cores count as one, and the larger of the two counts.
[[nodiscard]] double load_of(const job::Resources& wanted);
[[nodiscard]] double load_of(const job::Member& held);

// Returns indices into `waiting`. `held`: the load of each owner's running jobs.
[[nodiscard]] std::vector<std::size_t> in_turn(const std::vector<Waits>& waiting, std::map<std::string, double> held);

}  // namespace gridctl::control
