// SPDX-License-Identifier: Apache-2.0
#include "sched/geo/country.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/formatted.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "sched/geo/country_table.hpp"

namespace gridctl::sched {

namespace {

constexpr double k_earth_radius_km = 6371.0;

double in_ms(Duration rtt) { return std::chrono::duration<double, std::milli>(rtt).count(); }
std::string ms_text(Duration rtt) {
  return formatted(in_ms(rtt) < 1 ? "%.2f ms" : in_ms(rtt) < 10 ? "%.1f ms" : "%.0f ms", in_ms(rtt));
}

std::string seen_from(const LandmarkRtt& seen) {
  return ms_text(seen.rtt) + " from landmark " + seen.landmark.name +
         (seen.by == Witness::itself ? " (as it claims itself)" : "");
}

bool is_known(std::string_view code) {
  const auto circles = country_circles();
  return std::ranges::any_of(circles, [&](const CountryCircle& circle) { return code == circle.code; });
}

// Holds the landmark with the widest gap between what its round trip allows and where the country begins.
struct Gap {
  const LandmarkRtt* seen = nullptr;
  double nearest_km = 0, missing_ms = 0;
};
Gap widest_gap(const std::string& country, const std::vector<LandmarkRtt>& measured, double km_per_ms) {
  Gap widest;
  for (const LandmarkRtt& seen : measured) {
    const double nearest = distance_to(country, seen.landmark.at)->nearest_km;
    const double missing = nearest / km_per_ms - in_ms(seen.rtt);
    if (missing > widest.missing_ms) widest = {&seen, nearest, missing};
  }
  return widest;
}

CountryFinding too_near(CountryVerdict verdict, const std::string& country, const Gap& gap, double km_per_ms) {
  const bool by_light = verdict == CountryVerdict::impossible;
  return {verdict, "declared " + country + ", but " + seen_from(*gap.seen) + ": " + (by_light ? "light" : "a cable") +
                       " reaches " + formatted("%.0f km", in_ms(gap.seen->rtt) * km_per_ms) + " in that time, and " +
                       country + " begins " + formatted("%.0f km", gap.nearest_km) + " away" +
                       (by_light ? "" : " (radio links alone are faster)")};
}

// Checks whether the host is far from every landmark of the country that measured it.
std::optional<CountryFinding> too_far(const std::string& country, const std::vector<LandmarkRtt>& measured) {
  const LandmarkRtt* nearest = nullptr;
  double usual_ms = 0;
  std::size_t count = 0;
  for (const LandmarkRtt& seen : measured) {
    if (seen.landmark.country != country) continue;
    ++count;
    const double farthest = distance_to(country, seen.landmark.at)->farthest_km;
    const double usual = k_usual_last_mile_ms + k_usual_detour * farthest / k_fibre_km_per_rtt_ms;
    if (in_ms(seen.rtt) <= usual) return std::nullopt;
    usual_ms = std::max(usual_ms, usual);
    if (nearest == nullptr || seen.rtt < nearest->rtt) nearest = &seen;
  }
  if (nearest == nullptr) return std::nullopt;
  return CountryFinding{CountryVerdict::far,
                        "declared " + country + ", but " + ms_text(nearest->rtt) + " from " +
                            (count == 1 ? "landmark " + nearest->landmark.name + " there"
                                        : "the nearest of " + std::to_string(count) + " landmarks there") +
                            "; up to " + formatted("%.0f ms", usual_ms) + " is usual within the country"};
}

}  // namespace

double distance_km(Position a, Position b) {
  const auto radians = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double north = std::sin(radians(b.latitude - a.latitude) / 2);
  const double east = std::sin(radians(b.longitude - a.longitude) / 2);
  const double half = north * north + std::cos(radians(a.latitude)) * std::cos(radians(b.latitude)) * east * east;
  return 2 * k_earth_radius_km * std::asin(std::min(1.0, std::sqrt(half)));
}

std::optional<std::string> country_of(std::string_view region) {
  if (region.size() > 2 && region[2] != '-' && region[2] != '_') return std::nullopt;
  std::string code;
  for (const char c : region.substr(0, 2)) code += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (is_one_of(code, {"UK"})) code = "GB";
  if (!is_known(code)) return std::nullopt;
  return code;
}

std::optional<CountryDistance> distance_to(std::string_view country, Position from) {
  if (!is_known(country)) return std::nullopt;
  CountryDistance found{std::numeric_limits<double>::infinity(), 0};
  std::vector<std::string_view> parts;
  for (const CountryPart& one : country_parts())
    if (country == one.whole) parts.emplace_back(one.part);
  for (const CountryCircle& circle : country_circles()) {
    const bool own = country == circle.code;
    if (!own && std::ranges::find(parts, circle.code) == parts.end()) continue;
    const double centre = distance_km(from, {circle.latitude, circle.longitude});
    found.nearest_km = std::min(found.nearest_km, std::max(0.0, centre - circle.radius_km));
    if (own) found.farthest_km = std::max(found.farthest_km, centre + circle.radius_km);
  }
  return found;
}

std::string_view verdict_name(CountryVerdict verdict) {
  static constexpr Names<CountryVerdict, CountryVerdict::impossible> k_names{"undeclared", "unverified",  "plausible",
                                                                             "far",        "implausible", "impossible"};
  return k_names(verdict);
}

bool contradicts(CountryVerdict verdict) { return verdict >= CountryVerdict::far; }

CountryFinding judge_country(std::string_view region, const std::vector<LandmarkRtt>& measured) {
  if (region.empty()) return {CountryVerdict::undeclared, "no country was declared"};
  const std::optional<std::string> country = country_of(region);
  if (!country) return {CountryVerdict::undeclared, "'" + std::string(region) + "' is not a country"};
  if (const Gap gap = widest_gap(*country, measured, k_light_km_per_rtt_ms); gap.seen != nullptr)
    return too_near(CountryVerdict::impossible, *country, gap, k_light_km_per_rtt_ms);
  if (const Gap gap = widest_gap(*country, measured, k_fibre_km_per_rtt_ms); gap.seen != nullptr)
    return too_near(CountryVerdict::implausible, *country, gap, k_fibre_km_per_rtt_ms);
  if (std::optional<CountryFinding> far = too_far(*country, measured)) return *std::move(far);
  const LandmarkRtt* nearest = nullptr;
  for (const LandmarkRtt& seen : measured)
    if (seen.by != Witness::itself && (nearest == nullptr || seen.rtt < nearest->rtt)) nearest = &seen;
  if (nearest == nullptr) return {CountryVerdict::unverified, "declared " + *country + "; no landmark has measured it"};
  return {CountryVerdict::plausible, "declared " + *country + "; " + seen_from(*nearest) + ", so within " +
                                         formatted("%.0f km", in_ms(nearest->rtt) * k_fibre_km_per_rtt_ms) + " of it"};
}

}  // namespace gridctl::sched
