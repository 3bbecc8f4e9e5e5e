// SPDX-License-Identifier: Apache-2.0
// Sends all moves: takes running jobs off hosts that are being emptied, and carries out the wishes of
// concerns. Loop thread only.
#pragma once

#include <memory>
#include <vector>

#include "control/follow/attempts.hpp"
#include "control/follow/concern.hpp"
#include "control/follow/moves.hpp"
#include "control/follow/placement.hpp"

namespace gridctl::control {

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
