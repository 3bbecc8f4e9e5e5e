// SPDX-License-Identifier: Apache-2.0
// Judges whether a host can be in its declared country. Round trips to places of known position bound its distance: no
// signal is faster than light, so `rtt` means "at most so far", never "at least". A host that lies can add delay and
// look farther away; it cannot remove delay and look nearer (a nearby accomplice that answers in its place can, and no
// measurement from outside distinguishes the two). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace gridctl::sched {

// Light in glass (refractive index 1.468) travels 204 km in a millisecond, there and back 102; in air and vacuum
// (radio, satellites, hollow fibre) 299.8 and 149.9. The first limits cables, the second anything.
inline constexpr double k_fibre_km_per_rtt_ms = 102.1;
inline constexpr double k_light_km_per_rtt_ms = 149.9;
// Cables have detours and queues: up to four times the straight line, and a slow last mile, are usual.
inline constexpr double k_usual_detour = 4;
inline constexpr double k_usual_last_mile_ms = 30;

struct Position {
  double latitude = 0, longitude = 0;  // degrees; north and east are positive
};
[[nodiscard]] double distance_km(Position a, Position b);

// Returns the country of a region as users write it: "DE", "de", "DE-BY", "UK"; nullopt if it names none ("europe").
[[nodiscard]] std::optional<std::string> country_of(std::string_view region);

// Holds distances from `from` to anywhere the country could be; only `nearest_km` includes territories. nullopt for no
// country.
struct CountryDistance {
  double nearest_km = 0, farthest_km = 0;
};
[[nodiscard]] std::optional<CountryDistance> distance_to(std::string_view country, Position from);

struct Landmark {
  std::string name;
  Position at;
  std::string country;  // code, or empty when the user did not say
};
// Names the party that measured. A host's own statement can count against it, but proves nothing in its favour.
enum class Witness : std::uint8_t { here, provider, itself };
struct LandmarkRtt {
  Landmark landmark;
  Duration rtt{};  // the smallest that was seen
  Witness by = Witness::here;
};

enum class CountryVerdict : std::uint8_t {
  undeclared,   // nothing was declared, or no country
  unverified,   // no landmark was measured by anybody else
  plausible,    // nothing speaks against it
  far,          // unusually far from every landmark of the country: suspicious
  implausible,  // nearer to a landmark than cables allow
  impossible,   // nearer to a landmark than light allows
};
[[nodiscard]] std::string_view verdict_name(CountryVerdict verdict);
// far, implausible and impossible contradict the declaration.
[[nodiscard]] bool contradicts(CountryVerdict verdict);

struct CountryFinding {
  CountryVerdict verdict = CountryVerdict::undeclared;
  std::string text;  // "declared AU, but 1.1 ms from landmark fra: …"
};
[[nodiscard]] CountryFinding judge_country(std::string_view region, const std::vector<LandmarkRtt>& measured);

}  // namespace gridctl::sched
