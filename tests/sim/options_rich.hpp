// SPDX-License-Identifier: Apache-2.0
// Worlds of the second drawing: short ones in which much is under way when something fails.
#pragma once

#include "options.hpp"

namespace gridctl::sim {

// Most are short; some are beyond every timer.
[[nodiscard]] Nanos draw_duration(Random& random, const Options& options);

void condense(Random& random, Options& options);
// Makes it a world about one thing that users have, and that seldom comes together by itself.
void set_theme(Random& random, Options& options);
void enrich(Random& random, Options& options);

}  // namespace gridctl::sim
