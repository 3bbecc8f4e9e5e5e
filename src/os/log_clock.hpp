// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gridctl::os {

// Microseconds by the clock that the kernel stamps its log with: since boot, standing still in suspend.
[[nodiscard]] std::uint64_t kernel_log_us();

}  // namespace gridctl::os
