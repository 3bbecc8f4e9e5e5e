// SPDX-License-Identifier: Apache-2.0
#include "control/concerns/bag_leave.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::control {

namespace {

// The history of a worker's own job is seldom looked at. The bag's own job has the same event already.
void tell_of_worker(const Controls& controls, const TrackedJob& leader, const TrackedJob& worker, const char* kind,
                    const BagRun::Seat& seat, Epoch epoch) {
  if (worker.id() != leader.id()) controls.book.note(leader.id(), {kind, worker.state().reason_text, epoch, seat.host});
}

}  // namespace

void look_after_leaving(const Controls& controls, const TrackedJob& leader, BagRun& run) {
  for (auto& [worker, seat] : run.seats()) {
    TrackedJob* job = controls.book.find(seat.job);
    const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
    if (attempt == nullptr || attempt->epoch.value != worker.epoch || job->unsure) continue;
    job->idle_for_move.reset();
    job->runs_spared = std::ranges::any_of(seat.running, [&](bag::Index index) { return run.bag().is_spared(index); });
    const auto* running = job->in<job::Running>();
    const bool was_asked = seat.leaves;
    if (running == nullptr) {
      if (was_asked && !std::exchange(seat.has_left, true)) tell_of_worker(controls, leader, *job, "worker_left", seat, attempt->epoch);
      continue;
    }
    seat.leaves = running->move.has_value();
    if (seat.leaves != was_asked)
      tell_of_worker(controls, leader, *job, seat.leaves ? "worker_leaves" : "worker_stays", seat, attempt->epoch);
    if (!seat.leaves) {
      if (was_asked) run.give(worker);
    } else if (run.empty(worker)) {
      job->idle_for_move = running->move->since;
    }
  }
}

}  // namespace gridctl::control
