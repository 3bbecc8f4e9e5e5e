// SPDX-License-Identifier: Apache-2.0
// Worlds of the second drawing: short ones in which much is under way when something fails.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "options.hpp"

namespace gridctl::sim {

// Most are short; some are beyond every timer.
[[nodiscard]] Nanos draw_duration(Random& random, const Options& options);

void condense(Random& random, Options& options);
void enrich(Random& random, Options& options);
// Makes it a world about one thing that users have, and that seldom comes together by itself.
void set_theme(Random& random, Options& options, std::size_t which);
inline constexpr std::array<std::string_view, 8> k_themes{"spending", "refusals", "standbys", "deadlines",
                                                         "ends",     "commits",  "hangs",    "images"};
inline constexpr std::size_t k_themes_of_third = 6;  // the first ones
// A drawing of which each world is about that; nullopt: there is no such theme.
[[nodiscard]] std::optional<Drawing> about(std::string_view theme);
[[nodiscard]] std::optional<std::size_t> theme_of(Drawing drawing);

}  // namespace gridctl::sim
