// SPDX-License-Identifier: Apache-2.0
// Sends all moves: takes running jobs off hosts that are being emptied, and carries out the wishes of
// concerns. Loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "control/follow/attempts.hpp"
#include "control/follow/concern.hpp"
#include "control/follow/placement.hpp"
#include "job/state.hpp"
#include "sched/gang.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

// Decides when a job leaves a host that is being emptied, or leaves for a wish of a concern. Pure: ask as often as you
// like.
struct MoveFacts {
  HostName drained{};              // a host of the current attempt that is to be emptied; empty: none is
  bool wished = false;             // the reason for which it is moving still holds
  bool to_anywhere = false;        // and is worth it also when no host can take it now
  bool answers = false;            // the hosts do: only then can an attempt there be stopped
  Duration patience{};             // how long the next checkpoint, or the end of tasks, is waited for; 0: if drained, not at all
  bool by_tasks = false;           // a worker of a bag: it leaves when the tasks that it runs have ended,
  bool tasks_ended = false;        // and they have, and it gets no more
  std::uint64_t newest_there = 0;  // the host's number of the newest checkpoint that it has told of
  // The scheduler's present decision, without the promises made to other jobs that are moving.
  sched::Decision decision;
  // Holds, for a job on several hosts, the decision for all of its members instead.
  std::optional<sched::GangDecision> gang{};
  sched::GangWish wish{};
  [[nodiscard]] bool possible() const { return gang ? gang->plan.has_value() : decision.placement.has_value(); }
};

// Returns whether this job needs to be judged at all. (Asking the scheduler is not free.)
[[nodiscard]] bool may_move(const job::State& state, bool drained);
// Returns the next event, if any.
[[nodiscard]] std::optional<job::Event> judge_move(const job::State& state, const MoveFacts& facts, WallTime now);
// Returns lines for `job explain` while the job is about to move.
[[nodiscard]] std::vector<std::string> explain_move(const job::State& state, const MoveFacts& facts);

class Mover {
 public:
  Mover(const World& world, JobBook& book, Fleet& fleet, Attempts& attempts, Placement& placement)
      : world_(world), book_(book), fleet_(fleet), attempts_(attempts), placement_(placement) {}
  void consult(const std::vector<std::unique_ptr<Concern>>& concerns) { concerns_ = &concerns; }

  void tick(BootTime now);
  // Starts a move, unless the job is already moving.
  void ask(const TrackedJob& job, const MoveWish& wish);
  // Returns a host of the job's current attempt that is being emptied, or nullptr.
  [[nodiscard]] const FleetHost* drained_host(const TrackedJob& job) const;
  // Returns true if all hosts of the job are registered, connected and not drained: it may be judged for a move.
  [[nodiscard]] bool is_settled(const TrackedJob& job) const;

 private:
  void judge(TrackedJob& job);
  [[nodiscard]] bool ask_where(const TrackedJob& job, MoveFacts& facts, std::optional<MoveWish>& wish);
  [[nodiscard]] std::optional<MoveWish> wish_of(const TrackedJob& job);
  [[nodiscard]] bool answers(const TrackedJob& job) const;

  const World world_;
  JobBook& book_;
  Fleet& fleet_;
  Attempts& attempts_;
  Placement& placement_;
  const std::vector<std::unique_ptr<Concern>>* concerns_ = nullptr;
  BootTime next_{};
};

}  // namespace gridctl::control
