// SPDX-License-Identifier: Apache-2.0
#include "agent/stop_clock.hpp"

#include <algorithm>

#include "agent/init.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_kill_again = std::chrono::seconds{1};
// Returns the time that a warned program has between TERM and KILL: a part of its grace.
Duration after_term(Duration grace) { return std::min<Duration>(grace / 4, std::chrono::seconds{10}); }
}

bool StopClock::renew(BootTime wanted) {
  if (wanted <= deadline_) return false;
  deadline_ = wanted;
  return true;
}

StopStep StopClock::order(wire::EndReason why, Duration grace, BootTime now, bool takes_warnings) {
  const BootTime kill_at = now + grace;
  if (is_stopping()) {
    if (kill_at_) kill_at_ = std::min(*kill_at_, kill_at);
    if (terminate_at_) terminate_at_ = std::min(*terminate_at_, kill_at - after_term(grace));
    return StopStep::none;
  }
  reason_ = why;
  kill_at_ = kill_at;
  if (takes_warnings && grace > Duration{}) {
    terminate_at_ = kill_at - after_term(grace);
    return StopStep::warn;
  }
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

bool StopClock::terminate_now(BootTime now) {
  if (!terminate_at_ || now < *terminate_at_) return false;
  terminate_at_.reset();
  return true;
}

bool StopClock::kill_now(BootTime now) {
  if (!is_stopping() || !kill_at_ || now < *kill_at_) return false;
  kill_at_ = now + k_kill_again;
  return true;
}

BootTime StopClock::due(BootTime now) const {
  if (is_stopping() && terminate_at_) return std::min(*terminate_at_, kill_at_.value_or(*terminate_at_));
  return is_stopping() ? kill_at_.value_or(now + k_kill_again) : std::min(deadline_, limit_.value_or(deadline_));
}

bool lease_lasts(BootTime deadline, BootTime now) { return now < deadline; }

BootTime last_line(BootTime deadline, Duration grace) { return deadline + grace + k_init_slack; }

}  // namespace gridctl::agent
