// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.hpp"

namespace gridctl::os {

// Counts the time since some moment of this boot. It stands still while the machine sleeps, unlike Clock::boot.
[[nodiscard]] Duration awake_time();

}  // namespace gridctl::os
