// SPDX-License-Identifier: Apache-2.0
// Decides whether a running job should move to something cheaper. Pure.
//
// A host that was away, taken or expensive when the job was placed may become available: spot machines above all, which
// come and go. The cost of continuing is compared with the cost of the rest elsewhere, including restore and start. A
// stop must save more than cents, and a running job must not take twice as long.
#pragma once

#include <optional>
#include <string>

#include "job/spec.hpp"
#include "sched/deadline.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

inline constexpr double k_saving_min = 0.2;      // of what going on costs: estimates are not better than that
inline constexpr double k_saving_usd_min = 0.1;  // less is not worth a stop
inline constexpr double k_slower_max = 2;        // times as long as going on: nobody expects worse of a running job

// Returns whether to ask for this job at all: not if it would lose its computed work, nor if something other than its
// cost decides where it runs.
[[nodiscard]] bool may_move_for_less(const job::Spec& spec);
// Returns the question for place(): the remaining work, counted from the checkpoint that the move waits for.
[[nodiscard]] JobKnowledge for_less(JobKnowledge known, const CurrentRun& present);
// `elsewhere`: place() without the present host, for for_less(). Returns why the job should move, with numbers;
// nullopt: it stays.
[[nodiscard]] std::optional<std::string> judge_cheaper(const CurrentRun& present, const Decision& elsewhere,
                                                       const std::vector<Avoid>& avoided);

}  // namespace gridctl::sched
