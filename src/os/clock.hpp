// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.hpp"

namespace gridctl::os {

// Passed by reference to whoever needs time; the simulator supplies another.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual BootTime boot() const = 0;  // CLOCK_BOOTTIME: goes on while the machine sleeps
  [[nodiscard]] virtual WallTime wall() const = 0;  // for display and stored stamps only
};

[[nodiscard]] Clock& system_clock();

// In the time zone of this machine ($TZ).
struct LocalTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;  // month and day from 1
};
[[nodiscard]] LocalTime local_time(WallTime time);

// Blocks the calling thread; goes on after signals. Never on a loop's thread.
void pause_for(Duration duration);

}  // namespace gridctl::os
