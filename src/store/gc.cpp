// SPDX-License-Identifier: Apache-2.0
#include "store/gc.hpp"

#include <algorithm>
#include <chrono>

namespace gridctl::store {

PackDecision decide(const PackUse& pack, WallTime now, const GcPolicy& policy) {
  const Duration age = std::chrono::milliseconds{now.ms - pack.used_at.ms};  // negative after a clock step: young
  if (pack.live_bytes == pack.bytes) return {PackFate::keep, "all live"};
  const Duration age_min = std::max(policy.age_min, k_gc_age_floor);
  if (age < age_min) return {PackFate::keep, "used within " + format_duration(age_min)};
  if (pack.live_bytes == 0) return {PackFate::remove, "nothing live"};
  if (static_cast<double>(pack.live_bytes) < policy.rewrite_below * static_cast<double>(pack.bytes))
    return {PackFate::rewrite, "mostly dead"};
  return {PackFate::keep, "mostly live"};
}

}  // namespace gridctl::store
