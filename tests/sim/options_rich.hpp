// SPDX-License-Identifier: Apache-2.0
// Worlds of the second drawing: short ones in which much is under way when something fails.
#pragma once

#include "options.hpp"

namespace gridctl::sim {

// Most are short; some are beyond every timer.
[[nodiscard]] Nanos draw_duration(Random& random, const Options& options);

void condense(Random& random, Options& options);
void enrich(Random& random, Options& options);

}  // namespace gridctl::sim
