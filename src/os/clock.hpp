// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.hpp"

namespace gridctl::os {

// Tells the time. Functions get it by reference; the simulator supplies another clock.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual BootTime boot() const = 0;  // CLOCK_BOOTTIME: goes on while the machine sleeps
  [[nodiscard]] virtual WallTime wall() const = 0;  // for display and stored stamps only
};

[[nodiscard]] Clock& system_clock();

// Counts the time since some moment of this boot, as the kernel's log does. It stands still while the machine sleeps,
// unlike Clock::boot.
[[nodiscard]] Duration awake_time();

// Holds a time in the time zone of this machine ($TZ).
struct LocalTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;  // month and day from 1
};
[[nodiscard]] LocalTime local_time(WallTime time);

// Blocks the calling thread; continues after signals. Never call it on a loop's thread.
void pause_for(Duration duration);

}  // namespace gridctl::os
