// SPDX-License-Identifier: Apache-2.0
// Names of countries as people write them, where regions are codes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::sched {

// "Germany" -> "DE", "united_states" -> "US"; slips of a letter or two are forgiven. Empty when no country is meant.
[[nodiscard]] std::string region_code(std::string_view name);

}  // namespace gridctl::sched
