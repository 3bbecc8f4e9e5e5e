// SPDX-License-Identifier: Apache-2.0
// Handles hosts that end at a known time, in order: the time limit of an allocation, the hours of an owner, an evening
// that someone named. A job is not placed there for less time than it needs, saves before the end, and leaves. Pure.
#pragma once

#include "base/time.hpp"
#include "sched/interval.hpp"

namespace gridctl::sched {

inline constexpr Duration k_end_stop = std::chrono::seconds{60};     // for stopping a job, and for its last files
inline constexpr Duration k_end_stay = std::chrono::seconds{60};     // of work: for less, no job goes to such a host
inline constexpr Duration k_end_rhythm = std::chrono::seconds{60};   // for programs that save by a clock of their own
inline constexpr Duration k_end_lead_max = std::chrono::minutes{30};

// Returns how long before the end a job is asked to save and leave: time for two checkpoints (one may be in progress),
// for the program to reach that point, and to stop.
[[nodiscard]] Duration lead_before_end(const CheckpointCost& cost);
// Returns `tuned`, unless the next checkpoint would fall beyond `rest`, the time until the job has to leave: then it
// falls just before that.
[[nodiscard]] Interval before_end(Interval tuned, Duration rest);

}  // namespace gridctl::sched
