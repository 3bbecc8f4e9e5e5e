// SPDX-License-Identifier: Apache-2.0
// Decides when a silent host is given up. Pure. Silence counts only while this machine was awake and another host
// answered: otherwise its own network or its own sleep may be the reason (rule: unreachable is not dead).
#pragma once

#include "base/names.hpp"
#include "base/time.hpp"

namespace gridctl::job {

enum class Liveness : std::uint8_t { answering, suspect, unreachable, lost };
inline constexpr Names<Liveness, Liveness::lost> liveness_name{"answering", "suspect", "unreachable", "lost"};

class FailureDetector {
 public:
  // `tick_max`: a longer gap between two ticks means that this machine slept, and does not count. A shorter one counts
  // for a second at most: it may be a nap as well as a slow disk.
  explicit FailureDetector(Duration tick_max) : tick_max_(tick_max) {}
  void answered(BootTime now);
  // Call regularly. `others_answer`: at least one other host answered recently.
  void tick(BootTime now, bool others_answer);
  // Returns suspect after 1/3 of lost_after, unreachable after 2/3, lost after all of it.
  [[nodiscard]] Liveness judge(Duration lost_after) const;
  [[nodiscard]] Duration counted() const { return counted_; }

 private:
  Duration tick_max_;
  Duration counted_{};
  BootTime last_tick_{};
};

}  // namespace gridctl::job
