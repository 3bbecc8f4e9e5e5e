// SPDX-License-Identifier: Apache-2.0
// Builds the job that is a twin, or an additional replica, of another.
#pragma once

#include "job/spec.hpp"

namespace gridctl::job {

// The twin spends the leader's budget, and is stopped with it. Copies on remotes are the leader's.
[[nodiscard]] Spec twin_spec(const Spec& leader, const JobId& id, WallTime submitted_at, int number);

// Returns the maximum number of replicas of a service: besides those that its file asks for, one more stands in for a
// replica whose host is silent, and proves a new version.
[[nodiscard]] inline int slots_of(const Spec& service) { return service.twins + 1; }

}  // namespace gridctl::job
