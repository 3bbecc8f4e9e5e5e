// SPDX-License-Identifier: Apache-2.0
// Gives a concern the parts of the controller that it may use.
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
