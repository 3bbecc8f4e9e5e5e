// SPDX-License-Identifier: Apache-2.0
#include "job/keep.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace gridctl::job {

namespace {
constexpr std::int64_t k_hour_ms = 3'600'000, k_day_ms = 24 * k_hour_ms, k_week_ms = 7 * k_day_ms;
constexpr std::int64_t k_monday_ms = 4 * k_day_ms;  // 1970-01-05

std::int64_t period_of(WallTime at, std::int64_t length, std::int64_t begin) {
  const std::int64_t since = at.ms - begin;
  return since >= 0 ? since / length : -1 - (-1 - since) / length;
}

void keep_periods(int count, std::int64_t length, std::int64_t begin, std::span<const KeepCandidate> saved,
                  std::vector<bool>& kept) {
  std::optional<std::int64_t> newest;  // period that was served last
  for (std::size_t i = saved.size(); i-- > 0 && count > 0;) {
    const std::int64_t period = period_of(saved[i].at, length, begin);
    if (newest && period >= *newest) continue;  // also after a clock was set back
    newest = period;
    kept[i] = true;
    --count;
  }
}

void keep_best(const KeepPolicy& policy, std::span<const KeepCandidate> saved, std::vector<bool>& kept) {
  std::vector<std::pair<double, std::size_t>> ranked;  // the least first; of equals, the newest
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (saved[i].metrics == nullptr) continue;
    const auto found = saved[i].metrics->find(policy.metric);
    if (found != saved[i].metrics->end())
      ranked.emplace_back(policy.highest ? -found->second : found->second, saved.size() - i);
  }
  std::ranges::sort(ranked);
  for (std::size_t i = 0; i < ranked.size() && i < static_cast<std::size_t>(policy.best); ++i)
    kept[saved.size() - ranked[i].second] = true;
}
}  // namespace

std::vector<bool> kept(const KeepPolicy& policy, std::span<const KeepCandidate> saved) {
  std::vector<bool> kept(saved.size());
  const std::size_t last = std::min(saved.size(), static_cast<std::size_t>(std::max(policy.last, 0)));
  std::fill(kept.end() - static_cast<std::ptrdiff_t>(last), kept.end(), true);
  keep_periods(policy.hourly, k_hour_ms, 0, saved, kept);
  keep_periods(policy.daily, k_day_ms, 0, saved, kept);
  keep_periods(policy.weekly, k_week_ms, k_monday_ms, saved, kept);
  keep_best(policy, saved, kept);
  return kept;
}

}  // namespace gridctl::job
