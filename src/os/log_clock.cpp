// SPDX-License-Identifier: Apache-2.0
#include "os/log_clock.hpp"

#include <time.h>

namespace gridctl::os {

std::uint64_t kernel_log_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace gridctl::os
