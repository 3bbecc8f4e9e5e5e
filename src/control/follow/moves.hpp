// SPDX-License-Identifier: Apache-2.0
// When a job leaves a host that is to be emptied, needed more urgently, too risky for its deadline, or too dear. Pure:
// the supervisor and the simulator ask it, as often as they like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/state.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

struct MoveFacts {
  bool drained = false;            // the host of the current attempt
  bool in_time = false;            // its deadline is still to come
  bool preempted = false;          // a job of higher priority waits for its place
  bool cheaper = false;            // elsewhere, so much that it is worth a move
  bool answers = false;            // it does: only then can an attempt there be stopped
  Duration patience{};             // how long the next checkpoint is waited for
  std::uint64_t newest_there = 0;  // the host's number of the newest checkpoint that it has told of
  // What the scheduler says now, with what other jobs on their way were promised taken away.
  sched::Decision decision;
};

// Does this job need to be judged at all? (Asking the scheduler is not free.)
[[nodiscard]] bool may_move(const job::State& state, bool drained);
// What is to happen next, if anything.
[[nodiscard]] std::optional<job::Happening> judge_move(const job::State& state, const MoveFacts& facts, WallTime now);
// Lines for `job explain`, while it is to move.
[[nodiscard]] std::vector<std::string> explain_move(const job::State& state, const sched::Decision& decision);

}  // namespace gridctl::control
