// SPDX-License-Identifier: Apache-2.0
// When an attempt has to end: by order, or because its lease has passed. Pure; the per-attempt supervisor and the
// simulator ask it. Times are the host's boot clock.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

// The next step for the caller.
enum class StopStep : std::uint8_t {
  none,
  warn,       // the job is to be warned, with TERM and KILL to follow
  terminate,  // TERM to the job, with KILL to follow at due()
  wait,       // KILL follows at due(), which may be now
};

class StopClock {
 public:
  void set_deadline(BootTime deadline) { deadline_ = deadline; }
  // Only forward. True when it moved.
  bool renew(BootTime wanted);
  // The first reason stands; a later, shorter grace shortens the wait. A job that `takes_warnings` gets TERM in the last
  // part of the grace only: before it, it is warned.
  StopStep order(wire::EndReason why, Duration grace, BootTime now, bool takes_warnings = false);
  // Ends the lease that has passed.
  StopStep expire(Duration grace, BootTime now);
  // The moment at which the allowance is used up; nullopt: it is not limited.
  void set_limit(std::optional<BootTime> limit) { limit_ = limit; }
  [[nodiscard]] std::optional<BootTime> limit() const { return limit_; }
  // Ends what has reached its limit, with its whole grace: it is to save.
  StopStep exhaust(Duration grace, BootTime now);
  // True once, when a job that was warned is to be sent TERM.
  bool terminate_now(BootTime now);
  // True when everything is to be killed now; next asked again a second later, for processes may be born while we kill.
  bool kill_now(BootTime now);

  [[nodiscard]] bool is_stopping() const { return reason_ != wire::EndReason::none; }
  [[nodiscard]] wire::EndReason reason() const { return reason_; }
  [[nodiscard]] BootTime deadline() const { return deadline_; }
  [[nodiscard]] std::optional<BootTime> kill_at() const { return kill_at_; }
  [[nodiscard]] BootTime due(BootTime now) const;  // when to look again

 private:
  BootTime deadline_;
  std::optional<BootTime> limit_;
  wire::EndReason reason_ = wire::EndReason::none;
  std::optional<BootTime> kill_at_, terminate_at_;
};

// Whether the job's first process may begin its work.
[[nodiscard]] bool lease_lasts(BootTime deadline, BootTime now);
// The last line of defence, in the job's own first process: with supervisor and agent dead it ends the job by itself.
[[nodiscard]] BootTime last_line(BootTime deadline, Duration grace);

}  // namespace gridctl::agent
