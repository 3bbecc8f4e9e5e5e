// SPDX-License-Identifier: Apache-2.0
#include "agent/stop_clock.hpp"

#include <algorithm>

#include "agent/init.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_kill_again = std::chrono::seconds{1};
}

bool StopClock::renew(BootTime wanted) {
  if (wanted <= deadline_) return false;
  deadline_ = wanted;
  return true;
}

StopStep StopClock::order(wire::EndReason why, Duration grace, BootTime now) {
  const BootTime kill_at = now + grace;
  if (is_stopping()) {
    if (kill_at_) kill_at_ = std::min(*kill_at_, kill_at);
    return StopStep::none;
  }
  reason_ = why;
  kill_at_ = kill_at;
  return grace > Duration{} ? StopStep::terminate : StopStep::wait;
}

StopStep StopClock::expire(Duration grace, BootTime now) {
  if (is_stopping() || now < deadline_) return StopStep::none;
  // The grace runs from the deadline: a host that slept through both kills at once when it wakes.
  return order(wire::EndReason::lease_expired, std::max(deadline_ + grace - now, Duration{}), now);
}

StopStep StopClock::exhaust(Duration grace, BootTime now) {
  if (is_stopping() || !limit_ || now < *limit_) return StopStep::none;
  return order(wire::EndReason::limit, grace, now);
}

bool StopClock::kill_now(BootTime now) {
  if (!is_stopping() || !kill_at_ || now < *kill_at_) return false;
  kill_at_ = now + k_kill_again;
  return true;
}

BootTime StopClock::due(BootTime now) const {
  return is_stopping() ? kill_at_.value_or(now + k_kill_again) : std::min(deadline_, limit_.value_or(deadline_));
}

bool lease_lasts(BootTime deadline, BootTime now) { return now < deadline; }

BootTime last_line(BootTime deadline, Duration grace) { return deadline + grace + k_init_slack; }

}  // namespace gridctl::agent
