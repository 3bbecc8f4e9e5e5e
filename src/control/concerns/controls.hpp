// SPDX-License-Identifier: Apache-2.0
// The parts of the controller that a concern may use.
#pragma once

#include "control/follow/attempts.hpp"
#include "control/follow/concern.hpp"
#include "control/follow/mover.hpp"
#include "control/follow/placement.hpp"

namespace gridctl::control {

struct Controls {
  const World world;
  Fleet& fleet;
  JobBook& book;
  Attempts& attempts;
  Placement& placement;
  Mover& mover;
};

}  // namespace gridctl::control
