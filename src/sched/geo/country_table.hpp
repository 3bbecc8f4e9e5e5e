// SPDX-License-Identifier: Apache-2.0
// Locates countries as circles on the globe that cover them with room to spare.
#pragma once

#include <span>

namespace gridctl::sched {

struct CountryCircle {
  const char* code;  // ISO 3166-1 alpha-2; XK for Kosovo
  double latitude, longitude;
  double radius_km;
};
struct CountryPart {
  const char* part;  // a code of its own
  const char* whole;
};

[[nodiscard]] std::span<const CountryCircle> country_circles();  // by code
[[nodiscard]] std::span<const CountryPart> country_parts();

}  // namespace gridctl::sched
