// SPDX-License-Identifier: Apache-2.0
// Decides when the tick of each concern is due.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "control/follow/concern.hpp"
#include "os/clock.hpp"

namespace gridctl::control {

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

}  // namespace gridctl::control
