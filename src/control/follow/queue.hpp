// SPDX-License-Identifier: Apache-2.0
// In which order jobs that wait are asked for a place. Pure.
//
// The highest priority first; among equals the owner that holds least of the grid now, counting what the jobs before
// would get (fair share); of one owner the job that was submitted first. Whoever does not fit is passed over: smaller
// jobs run meanwhile (backfill).
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

// In GPUs; eight cores count as one, and what is more counts.
[[nodiscard]] double load_of(const job::Resources& wanted);
[[nodiscard]] double load_of(const job::Member& held);

// Indices into `waiting`. `held`: the load of each owner's running jobs.
[[nodiscard]] std::vector<std::size_t> in_turn(const std::vector<Waits>& waiting, std::map<std::string, double> held);

}  // namespace gridctl::control
