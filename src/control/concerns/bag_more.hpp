// SPDX-License-Identifier: Apache-2.0
// Handles tasks that ran out of memory or disk (`retry: {memory: x2}`): they wait for a worker that has more. Such
// workers are made while a host has room for them. When the bag has no other tasks left, the other workers make room,
// and the job itself gets more.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "control/concerns/controls.hpp"
#include "control/follow/bag_run.hpp"

namespace gridctl::control {

// Returns how many additional workers can be placed now, up to the given number.
[[nodiscard]] std::uint64_t room_for(const Controls& controls, const TrackedJob& leader, std::uint64_t most);
// Takes one step. `members`: ids of the leader and its workers. `most`: the number of workers that the bag may have.
// `make` creates another worker.
void feed_hungry(const Controls& controls, TrackedJob& leader, std::set<std::string> members, BagRun& run, std::uint64_t most,
                 const std::function<void(job::Spec)>& make);

// Returns 1 for the bag's own job.
[[nodiscard]] std::uint32_t worker_number(const TrackedJob& job);
// Returns `spec` for the worker with this number: the worker spends the leader's budget and ends with the leader.
[[nodiscard]] job::Spec worker_spec(const TrackedJob& leader, job::Spec spec, std::uint32_t number);

}  // namespace gridctl::control
