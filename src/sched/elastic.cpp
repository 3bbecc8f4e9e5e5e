// SPDX-License-Identifier: Apache-2.0
#include "sched/elastic.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::sched {

namespace {
std::string seconds_text(double s) { return format_duration(std::chrono::seconds{std::llround(std::min(s, 3e9))}); }
}  // namespace

GrowthVerdict judge_growth(const GrowthFacts& facts) {
  const std::string size = std::to_string(facts.would_be) + " hosts instead of " + std::to_string(facts.members);
  const std::string costs = "a restart costs " + seconds_text(facts.restart);
  if (facts.there < k_growth_steady) return {false, size + " have been available for only " + format_duration(facts.there)};
  if (seconds(facts.runs) < k_growth_rest * facts.restart)
    return {false, size + ": " + costs + ", and this attempt has run for only " + seconds_text(seconds(facts.runs))};
  double lasts = facts.left.value_or(facts.ran);
  if (facts.failures_per_hour > 0) lasts = std::min(lasts, 3600 / facts.failures_per_hour);
  const double gain = lasts * (1 - static_cast<double>(facts.members) / facts.would_be);
  const std::string gains =
      size + " save " + seconds_text(gain) + " of " +
      (facts.left ? "the time left, or the time until a failure" : "as much as it has run so far");
  if (gain <= facts.restart) return {false, gains + ", and " + costs};
  return {true, gains + "; " + costs};
}

}  // namespace gridctl::sched
