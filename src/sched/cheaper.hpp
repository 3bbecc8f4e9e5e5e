// SPDX-License-Identifier: Apache-2.0
// Is a running job worth moving to what is cheaper? Pure.
//
// As a host that was away, taken or dear when the job was placed becomes available: spot machines above all, which go
// and come back. What going on costs is compared with what the rest costs elsewhere, restore and start included. Nobody
// expects a stop for cents, nor that a running job takes twice as long.
#pragma once

#include <optional>
#include <string>

#include "job/spec.hpp"
#include "job/state.hpp"
#include "sched/deadline.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

inline constexpr double k_saving_min = 0.2;      // of what going on costs: estimates are not better than that
inline constexpr double k_saving_usd_min = 0.1;  // less is not worth a stop
inline constexpr double k_slower_max = 2;        // times as long as going on: nobody expects worse of a running job

// Does it make sense to ask for this job at all? Not when it would lose what it has computed, nor when something else
// than its cost decides where it runs.
[[nodiscard]] bool may_move_for_less(const job::Spec& spec);
// Returns the question for place(): the work that is left, counted from the checkpoint that the move waits for.
[[nodiscard]] JobKnowledge for_less(JobKnowledge known, const CurrentRun& present);
// `elsewhere`: place() without the present host, for for_less(). Why it shall move, with numbers; nullopt: it stays.
[[nodiscard]] std::optional<std::string> judge_cheaper(const CurrentRun& present, const Decision& elsewhere,
                                                       const std::vector<Avoid>& avoided);

}  // namespace gridctl::sched
