// SPDX-License-Identifier: Apache-2.0
// Follows every unfinished job of one state directory: connects the rooms. job::step and sched make all decisions, the
// registry holds all state, and all effects go through the World. The simulator runs this very class. Loop thread only.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "control/concerns/table.hpp"
#include "control/copies/world.hpp"
#include "control/follow/concern.hpp"
#include "os/clock.hpp"

namespace gridctl::control {

// Decides when the tick of each concern is due.
// Runs on the loop thread. A concern is asked again after its period, but not before twenty times the duration of its
// last tick, at most a minute (this machine may have slept in the meantime): so even with thousands of hosts and jobs,
// no concern takes more than a twentieth of the loop's time.
class Rota {
 public:
  explicit Rota(os::Clock& clock) : clock_(clock) {}
  // Ticks the concerns; pass the same ones each time.
  void tick(BootTime now, const std::vector<std::unique_ptr<Concern>>& concerns) {
    due_.resize(concerns.size());
    for (std::size_t i = 0; i < concerns.size(); ++i) {
      if (now < due_[i]) continue;
      const BootTime begun = clock_.boot();
      concerns[i]->tick(now);
      due_[i] = now + std::max(concerns[i]->period(), std::min<Duration>((clock_.boot() - begun) * k_share, k_rest_max));
    }
  }

 private:
  static constexpr int k_share = 20;
  static constexpr Duration k_rest_max = std::chrono::minutes{1};
  os::Clock& clock_;
  std::vector<BootTime> due_;
};

struct Settings {
  Duration health_every = k_health_every;  // 0: hosts are never asked for their health
  Duration tick = k_tick;
};

class Controller : private FleetListener, private JobListener {
 public:
  Controller(const World& world, const Settings& settings, std::span<const ConcernMaker> concerns = k_concerns);

  // Loads unfinished jobs and starts. Later errors of the registry are logged and retried.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] bool is_idle() const { return book_.is_idle(); }
  [[nodiscard]] bool has_work() { return book_.has_work(); }
  [[nodiscard]] Fleet& fleet() { return fleet_; }
  [[nodiscard]] JobBook& book() { return book_; }
  [[nodiscard]] const JobBook& book() const { return book_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  // Saves at the daemon's end, because observations of hosts must not be lost.
  void save();

 private:
  void tick();
  void found(const TrackedJob& job) override;
  void changed(const TrackedJob& job, const job::State& before) override;
  void forgotten(const JobId& id) override;
  void gpu_lost(const FleetHost& host, const std::string& gpu, const std::string& why) override;

  const World world_;
  const Duration tick_;
  Fleet fleet_;
  JobBook book_;
  Placement placement_;
  Attempts attempts_;
  Mover mover_;
  std::vector<std::unique_ptr<Concern>> concerns_;
  Rota rota_;
  std::int64_t seen_version_ = -1;
  BootTime next_refresh_{};
  os::Executor::Timer timer_;
};

}  // namespace gridctl::control
