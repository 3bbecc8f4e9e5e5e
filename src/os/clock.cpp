// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <cerrno>
#include <ctime>

namespace gridctl::os {

namespace {
class SystemClock final : public Clock {
 public:
  BootTime boot() const override {
    timespec now{};
    GRIDCTL_CHECK(::clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return {std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
  }
  WallTime wall() const override {
    timespec now{};
    GRIDCTL_CHECK(::clock_gettime(CLOCK_REALTIME, &now) == 0);
    return {std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000};
  }
};
}  // namespace

Duration awake_time() {
  timespec now{};
  GRIDCTL_CHECK(::clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

LocalTime local_time(WallTime time) {
  const std::time_t whole = static_cast<std::time_t>(time.ms / 1000);
  std::tm parts{};
  ::localtime_r(&whole, &parts);
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec};
}

void pause_for(Duration duration) {
  if (duration.count() <= 0) return;
  timespec left{static_cast<time_t>(duration.count() / 1'000'000'000),
                static_cast<long>(duration.count() % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {}
}

}  // namespace gridctl::os
