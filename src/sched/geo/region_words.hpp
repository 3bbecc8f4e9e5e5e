// SPDX-License-Identifier: Apache-2.0
// Recognises names of countries where regions should be codes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::sched {

// Turns "Germany" into "DE", "united_states" into "US"; tolerates one or two wrong letters. Empty if no country is
// meant.
[[nodiscard]] std::string region_code(std::string_view name);

}  // namespace gridctl::sched
