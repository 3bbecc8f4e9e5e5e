// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "points.hpp"

namespace gridctl::sim {

// Says what breaks a rule; false then. `counts`: how often each point came to what.
[[nodiscard]] bool try_pairs(Points::Counts& counts, bool keep_going);

}  // namespace gridctl::sim
