// SPDX-License-Identifier: Apache-2.0
// Decides which checkpoints of a job are kept. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "base/time.hpp"

namespace gridctl::job {

// Rules add up: a checkpoint that one of them wants stays.
struct KeepPolicy {
  int last = 3;                           // the newest so many; 1..1000
  int hourly = 0, daily = 0, weekly = 0;  // of the newest so many hours, days, weeks (UTC, from Monday) that have any,
                                          // the newest one of each; 0..1000
  int best = 0;                           // those with the best `metric`; without it none competes; 0..1000
  std::string metric;
  bool highest = false;  // is best; else the lowest
  static KeepPolicy newest(int count) {
    KeepPolicy policy;
    policy.last = count;
    return policy;
  }
  bool operator==(const KeepPolicy&) const = default;
};

struct KeepCandidate {
  WallTime at;
  const Metrics* metrics = nullptr;  // borrowed
};

// Returns for each, oldest first, whether it is kept.
[[nodiscard]] std::vector<bool> kept(const KeepPolicy& policy, std::span<const KeepCandidate> saved);

}  // namespace gridctl::job
