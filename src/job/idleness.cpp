// SPDX-License-Identifier: Apache-2.0
#include "job/idleness.hpp"

#include <algorithm>

namespace gridctl::job {

void Idleness::alive(BootTime at) {
  if (last_ && at > *last_) longest_ = std::max(longest_, at - *last_);
  if (!last_ || at > *last_) last_ = at;
  for (std::size_t i = 0; i < since_.size(); ++i) {
    seen_[i] += since_[i];
    count_ += since_[i];
  }
  since_.fill(0);
}

void Idleness::sign(BootTime at) { alive(at); }

void Idleness::measured(int percent, BootTime at) {
  ++since_[static_cast<std::size_t>(std::clamp(percent, 0, 100))];
  if (percent >= k_idle_percent) alive(at);
}

void Idleness::unknown(BootTime at) {
  if (last_ && at > *last_) last_ = at;
}

std::optional<int> Idleness::usual() const {
  if (count_ < k_habit_measured) return std::nullopt;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    below += seen_[i];
    if (2 * below > count_) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::optional<Idleness::Hang> Idleness::hang(BootTime now) const {
  const std::optional<int> habit = usual();
  if (!last_ || !habit || *habit < k_busy_habit) return std::nullopt;
  const Duration silent = now - *last_;
  if (silent <= std::max(least_, longest_ * k_times_longest)) return std::nullopt;
  return Hang{silent, *habit};
}

std::string Idleness::Hang::text(std::string_view what) const {
  return "no output, no checkpoint and idle " + std::string(what) + " for " + format_duration(silent) + "; " +
         std::string(what) + " are usually " + std::to_string(usual) + " % busy";
}

}  // namespace gridctl::job
