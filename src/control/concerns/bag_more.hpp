// SPDX-License-Identifier: Apache-2.0
// Tasks of a bag that ran out of memory or disk (`retry: {memory: x2}`) wait for a worker that has more. Such workers are
// made while a host has room for them. When nothing else of the bag is left, the others make room, and the job itself gets
// more.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "control/concerns/controls.hpp"
#include "control/follow/bag_run.hpp"

namespace gridctl::control {

// The number of further workers that find a place now, up to so many.
[[nodiscard]] std::uint64_t room_for(const Controls& controls, const TrackedJob& leader, std::uint64_t most);
// One step. `members`: ids of the leader and its workers; `most`: workers that the bag may have; `make` makes another one.
void feed_hungry(const Controls& controls, TrackedJob& leader, std::set<std::string> members, BagRun& run, std::uint64_t most,
                 const std::function<void(job::Spec)>& make);

// Returns 1 for the bag's own job.
[[nodiscard]] std::uint32_t worker_number(const TrackedJob& job);
// Returns `spec` for the worker of this number: it spends the leader's budget, and ends with it.
[[nodiscard]] job::Spec worker_spec(const TrackedJob& leader, job::Spec spec, std::uint32_t number);

}  // namespace gridctl::control
