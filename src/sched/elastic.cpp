// SPDX-License-Identifier: Apache-2.0
#include "sched/elastic.hpp"

#include <algorithm>

#include "sched/cost.hpp"

namespace gridctl::sched {

GrowthVerdict judge_growth(const GrowthFacts& facts) {
  const std::string size = std::to_string(facts.would_be) + " hosts instead of " + std::to_string(facts.members);
  const std::string costs = "a restart costs " + in_words(facts.restart);
  if (facts.there < k_growth_steady) return {false, size + " have been available for only " + format_duration(facts.there)};
  if (seconds(facts.runs) < k_growth_rest * facts.restart)
    return {false, size + ": " + costs + ", and this attempt has run for only " + in_words(seconds(facts.runs))};
  double lasts = facts.left.value_or(facts.ran);
  if (facts.failures_per_hour > 0) lasts = std::min(lasts, 3600 / facts.failures_per_hour);
  const double gain = lasts * (1 - static_cast<double>(facts.members) / facts.would_be);
  const std::string gains =
      size + " save " + in_words(gain) + " of " +
      (facts.left ? "the time left, or the time until a failure" : "as much as it has run so far");
  if (gain <= facts.restart) return {false, gains + ", and " + costs};
  return {true, gains + "; " + costs};
}

}  // namespace gridctl::sched
