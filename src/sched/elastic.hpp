// SPDX-License-Identifier: Apache-2.0
// Decides whether a gang that runs with fewer members than it may have should restart with more. Pure.
//
// A restart costs time. It pays until the work is done or the next failure comes, whichever is sooner: after a failure,
// the gang gets all available hosts anyway.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"

namespace gridctl::sched {

struct GrowthFacts {
  int members = 1, would_be = 1;
  Duration runs{};                    // for how long this attempt has
  Duration there{};                   // for how long hosts for so many have been there
  double restart = 0;                 // seconds from the stop until it is where it was
  std::optional<double> left{};       // seconds of work, with the members that it has; nullopt: not known
  double ran = 0;                     // seconds, in all attempts: what is not known is taken to last as long again
  double failures_per_hour = 0;       // of the gang that it would be
};

inline constexpr Duration k_growth_steady = std::chrono::seconds{10};  // hosts that come and go are no gain
inline constexpr double k_growth_rest = 9;  // an attempt runs for so many restarts before: they cost a tenth at most

struct GrowthVerdict {
  bool grows = false;
  std::string text;  // why, or why not yet; for people
};
// REQUIRES: would_be > members >= 1.
[[nodiscard]] GrowthVerdict judge_growth(const GrowthFacts& facts);

}  // namespace gridctl::sched
