// SPDX-License-Identifier: Apache-2.0
// Hosts that end at a known instant, in order: the time limit of an allocation, the hours of an owner, an evening that
// somebody named. A job is not placed there for less time than it needs, saves before the end, and leaves. Pure.
#pragma once

#include "base/time.hpp"
#include "sched/interval.hpp"

namespace gridctl::sched {

inline constexpr Duration k_end_stop = std::chrono::seconds{60};     // for stopping a job, and for its last files
inline constexpr Duration k_end_stay = std::chrono::seconds{60};     // of work: for less, no job goes to such a host
inline constexpr Duration k_end_rhythm = std::chrono::seconds{60};   // for programs that save by a clock of their own
inline constexpr Duration k_end_lead_max = std::chrono::minutes{30};

// So long before the end a job is asked to save and to leave: time for two checkpoints (one may be under way), for the
// program to come to it, and to stop.
[[nodiscard]] Duration lead_before_end(const CheckpointCost& cost);
// `tuned`, where the next checkpoint would fall beyond `rest`, the time until the job is to leave: then it falls just
// before that.
[[nodiscard]] Interval before_end(Interval tuned, Duration rest);

}  // namespace gridctl::sched
