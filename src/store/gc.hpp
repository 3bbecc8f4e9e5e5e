// SPDX-License-Identifier: Apache-2.0
// Decides about each pack in garbage collection. Pure: facts in, decisions with reasons out.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"

namespace gridctl::store {

inline constexpr Duration k_gc_age_floor = std::chrono::minutes{30};  // three claim periods: less would race writers

struct GcPolicy {
  Duration age_min = std::chrono::hours{24};         // packs written or claimed later are left alone; the floor holds
  Duration unfinished_age = std::chrono::hours{24};  // after so long without a write, an unfinished pack is an orphan
  double rewrite_below = 0.5;                        // share of live bytes under which they are copied out
};

struct PackUse {
  std::string name;
  std::uint64_t bytes = 0, live_bytes = 0;  // of blobs
  WallTime used_at;                         // written or last claimed
};

enum class PackFate : std::uint8_t { keep, remove, rewrite };
struct PackDecision {
  PackFate fate = PackFate::keep;
  std::string reason;
};

[[nodiscard]] PackDecision decide(const PackUse& pack, WallTime now, const GcPolicy& policy);

}  // namespace gridctl::store
