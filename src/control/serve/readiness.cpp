// SPDX-License-Identifier: Apache-2.0
#include "control/serve/readiness.hpp"

#include <algorithm>

namespace gridctl::control {

namespace {
constexpr Duration k_was_ready_patience = std::chrono::minutes{2};
constexpr Duration k_step_max = std::chrono::seconds{1};  // a longer pause is the sleep of this machine
}  // namespace

Duration patience_with_server(const job::Service& service, bool was_ready) {
  return was_ready ? std::min<Duration>(service.initial_delay, k_was_ready_patience) : service.initial_delay;
}

void ReadyClock::see(Epoch epoch, bool reachable, bool up, Duration passed, const job::Service& service) {
  if (epoch != told_.epoch) {
    told_ = {epoch};
    unready_ = {};
  }
  if (epoch == Epoch{}) return;
  if (up) {
    told_.ready = true;
    told_.late = false;
    unready_ = {};
  } else if (reachable) {
    unready_ += std::min(passed, k_step_max);
    told_.late = unready_ > patience_with_server(service, told_.ready);
  }
}

}  // namespace gridctl::control
