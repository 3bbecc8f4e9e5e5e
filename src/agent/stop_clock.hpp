// SPDX-License-Identifier: Apache-2.0
// Decides when an attempt has to end: by order, or because its lease has expired. Pure; the per-attempt supervisor and
// the simulator use it. Times are the host's boot clock.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

// Names the next step for the caller.
enum class StopStep : std::uint8_t {
  none,
  warn,       // the job is to be warned, with TERM and KILL to follow
  terminate,  // TERM to the job, with KILL to follow at due()
  wait,       // KILL follows at due(), which may be now
};

class StopClock {
 public:
  void set_deadline(BootTime deadline) { deadline_ = deadline; }
  // Moves the deadline only forward. Returns true if it moved.
  bool renew(BootTime wanted);
  // The first reason stands; a later, shorter grace shortens the wait. A job that `takes_warnings` is warned first, and
  // gets TERM only in the last part of the grace.
  StopStep order(wire::EndReason why, Duration grace, BootTime now, bool takes_warnings = false);
  // Ends an attempt whose lease has expired.
  StopStep expire(Duration grace, BootTime now);
  // Sets when the allowance is used up; nullopt: it is not limited.
  void set_limit(std::optional<BootTime> limit) { limit_ = limit; }
  [[nodiscard]] std::optional<BootTime> limit() const { return limit_; }
  // Ends an attempt that has reached its limit, with its complete grace, so that it can save.
  StopStep exhaust(Duration grace, BootTime now);
  // Returns true once, when a warned job has to be sent TERM.
  bool terminate_now(BootTime now);
  // Returns true when everything has to be killed now, and again every second, because processes may start during the
  // killing.
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

// Returns whether the job's first process may begin its work.
[[nodiscard]] bool lease_lasts(BootTime deadline, BootTime now);
// Returns the last line of defence, in the job's first process: if supervisor and agent are dead, it ends the job on
// its own.
[[nodiscard]] BootTime last_line(BootTime deadline, Duration grace);

}  // namespace gridctl::agent
