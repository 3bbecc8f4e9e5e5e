// SPDX-License-Identifier: Apache-2.0
// Lets workers of a bag leave their hosts, for a more urgent job or because the host is being emptied. A worker that is
// asked to leave gets no more tasks and gives back those that it has not begun; the mover stops it when the others have
// ended, or when their time is over. If the reason to leave is gone first, it gets tasks again.
#pragma once

#include "control/concerns/controls.hpp"
#include "control/follow/bag_run.hpp"

namespace gridctl::control {

// Takes one step for each worker of the bag, and reports in the bag's history what becomes of those that are asked to
// leave. `leader`: the bag's own job.
void look_after_leaving(const Controls& controls, const TrackedJob& leader, BagRun& run);

}  // namespace gridctl::control
