// SPDX-License-Identifier: Apache-2.0
// The job that is a twin, or a further replica, of another.
#pragma once

#include "job/spec.hpp"

namespace gridctl::job {

// It spends the leader's budget, and is stopped with it. What is copied elsewhere is the leader's.
[[nodiscard]] Spec twin_spec(const Spec& leader, const JobId& id, WallTime submitted_at, int number);

// Replicas that a service has at most: besides those that its file asks for, one more stands in for a replica whose
// host is silent, and proves a new version.
[[nodiscard]] inline int slots_of(const Spec& service) { return service.twins + 1; }

}  // namespace gridctl::job
