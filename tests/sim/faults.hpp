// SPDX-License-Identifier: Apache-2.0
// Carrying out the list of faults, and taking all of them back.
#pragma once

namespace gridctl::job {
struct Attempt;
}

namespace gridctl::sim {
class World;
struct Fault;
// From fault.at on, for its duration.
void schedule(World& world, const Fault& fault);
void schedule_faults(World& world);
// The host of the first job fails and comes back, again and again, after exponential times.
void schedule_failure(World& world);
// One that strikes where much is under way: within seconds, the machines of this attempt or the laptop that follows it.
void strike_rich(World& world, int laptop, const job::Attempt& attempt);
void heal(World& world);
}  // namespace gridctl::sim
