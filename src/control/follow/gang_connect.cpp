// SPDX-License-Identifier: Apache-2.0
// Before a gang starts, its members prove that they reach each other.
#include "control/follow/attempts.hpp"

namespace gridctl::control {

void Attempts::carry_out(TrackedJob& job, const job::Connect& effect) {
  book_.apply(job.id(), job::MembersConnected{effect.epoch, "not measured"});
}

}  // namespace gridctl::control
