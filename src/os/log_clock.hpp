// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gridctl::os {

// Returns microseconds by the clock of the kernel's log: since boot, standing still in suspend.
[[nodiscard]] std::uint64_t kernel_log_us();

}  // namespace gridctl::os
