// SPDX-License-Identifier: Apache-2.0
// Writes Use as JSON and reads it back: as part of a status on the wire, and in the controller's state directory.
#pragma once

#include "base/record.hpp"
#include "base/use.hpp"

namespace gridctl {

GRIDCTL_FIELDS_ELSEWHERE(GpuUse)
GRIDCTL_FIELDS_ELSEWHERE(Use)

}  // namespace gridctl
