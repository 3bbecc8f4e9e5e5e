// SPDX-License-Identifier: Apache-2.0
// Tells which attempts run on hosts that belong to others, and what follows for their checkpoints.
#pragma once

#include <algorithm>

#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "job/spec.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::control {

[[nodiscard]] inline bool is_lent_host(const Fleet& fleet, const HostName& name) {
  const FleetHost* host = fleet.find(name);
  return host != nullptr && sched::is_lent(host->provider.host_class, host->provider.labels);
}

// Returns whether a member is on such a host. nullptr: no attempt runs.
[[nodiscard]] inline bool is_on_lent(const Fleet& fleet, const job::Attempt* attempt) {
  return attempt != nullptr && std::any_of(attempt->members.begin(), attempt->members.end(), [&](const job::Member& one) {
           return is_lent_host(fleet, one.host);
         });
}

// Returns the interval that holds for the current attempt of the job: `off` does not hold on borrowed hosts.
[[nodiscard]] inline job::CheckpointPolicy::Interval interval_now(const Fleet& fleet, const TrackedJob& job) {
  return job::interval_on(job.spec(), is_on_lent(fleet, job.state().attempt()));
}

}  // namespace gridctl::control
