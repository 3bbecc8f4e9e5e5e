// SPDX-License-Identifier: Apache-2.0
// Carrying out the list of faults, and taking all of them back.
#pragma once

namespace gridctl::sim {
class World;
void schedule_faults(World& world);
void heal(World& world);
}  // namespace gridctl::sim
