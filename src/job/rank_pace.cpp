// SPDX-License-Identifier: Apache-2.0
#include "job/rank_pace.hpp"

#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"

namespace gridctl::job {

namespace {
constexpr std::size_t k_open_max = 64;      // steps that some rank has not told: older ones are given up
constexpr std::size_t k_slow_steps = 8;     // of k_pace_steps
constexpr double k_spread_factor = 6;       // times the usual spread of the peers: noise reaches that in no ten thousand steps
constexpr std::size_t k_gaps_max = 200, k_gaps_min = 20;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the median of the distances from the median: one slow rank does not move it.
double spread(const std::vector<double>& values, double center) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - center));
  return median(std::move(distances));
}

bool is_slow(double cost, std::vector<double> peers) {
  const double center = median(peers);
  const double noise = spread(peers, center);
  return center > 0 && cost > center * k_slow_factor && cost > center + k_spread_factor * noise;
}

Duration quantile(std::vector<Duration> values, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

std::string seconds_text(Duration duration) {
  return formatted(seconds(duration) < 10 ? "%.1f s" : "%.0f s", seconds(duration));
}
}  // namespace

std::string Straggler::text() const {
  return formatted("rank %u takes %.1f times as long as its peers (in %zu of %zu steps)", rank, factor, steps,
                   k_pace_steps);
}

void RankPace::told(const RankStep& step) {
  if (step.rank >= world_) return;
  StepTimes& row = open_[step.step];
  row.ranks.try_emplace(step.rank, step);  // what is told twice counts once
  if (row.ranks.size() == world_) {
    whole_.push_back(std::move(row));
    open_.erase(open_.begin(), open_.upper_bound(step.step));  // an older one will not become whole any more
    if (whole_.size() > k_pace_steps + 1) whole_.pop_front();
  }
  if (open_.size() > k_open_max) open_.erase(open_.begin());
}

// Uses the computing times that ranks report, or otherwise the time from the last arrival at the previous step until
// each reached this one: no rank starts earlier.
std::vector<double> RankPace::costs(std::size_t index) const {
  const StepTimes& row = whole_[index];
  const bool busy = std::ranges::all_of(row.ranks, [](const auto& one) { return one.second.busy_s.has_value(); });
  std::vector<double> costs;
  if (busy) {
    for (const auto& [rank, step] : row.ranks) costs.push_back(*step.busy_s);
    return costs;
  }
  if (index == 0) return {};
  BootTime began{};
  for (const auto& [rank, step] : whole_[index - 1].ranks) began = std::max(began, step.at);
  for (const auto& [rank, step] : row.ranks) costs.push_back(std::max(0.0, seconds(step.at - began)));
  return costs;
}

std::optional<Straggler> RankPace::straggler() const {
  if (world_ < 2 || whole_.size() < k_pace_steps) return std::nullopt;
  std::vector<std::size_t> slow(world_, 0);
  std::vector<std::vector<double>> factors(world_);
  for (std::size_t i = whole_.size() - k_pace_steps; i < whole_.size(); ++i) {
    const std::vector<double> all = costs(i);
    if (all.empty()) continue;
    const double least = *std::ranges::min_element(all);
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
      if (all[rank] <= least * k_slow_factor) continue;  // whatever the median of its peers is
      std::vector<double> peers = all;
      peers.erase(peers.begin() + rank);
      if (!is_slow(all[rank], peers)) continue;
      ++slow[rank];
      factors[rank].push_back(all[rank] / median(peers));
    }
  }
  std::optional<Straggler> worst;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (slow[rank] < k_slow_steps) continue;
    const Straggler found{rank, median(factors[rank]), slow[rank]};
    if (!worst || found.factor > worst->factor) worst = found;
  }
  return worst;
}

void Progress::sign(BootTime at) {
  if (last_ && at > *last_) {
    gaps_.push_back(at - *last_);
    if (gaps_.size() > k_gaps_max) gaps_.pop_front();
  }
  if (!last_ || at > *last_) last_ = at;
}

void Progress::pause(BootTime at) {
  if (last_ && at > *last_) last_ = at;
}

// Returns three times the longest of the usual gaps: a job that evaluates or saves occasionally has shown that gap
// before.
std::optional<Duration> Progress::allowed() const {
  if (gaps_.size() < k_gaps_min) return std::nullopt;
  const std::vector<Duration> gaps(gaps_.begin(), gaps_.end());
  const Duration usual = quantile(gaps, 0.5), longest = *std::ranges::max_element(gaps);
  const auto times = [](Duration duration, double factor) {
    return Duration{static_cast<std::int64_t>(static_cast<double>(duration.count()) * factor)};
  };
  // The promised patience is three times the usual step, and at most a minute for fast steps; a rank that has paused
  // for longer before may do so again.
  const Duration wanted = std::clamp(times(usual, k_hang_factor), k_hang_least, std::max(k_hang_most, times(usual, k_hang_factor)));
  return std::max(wanted, times(longest, 1.5));
}

std::optional<Progress::Hang> Progress::hang(BootTime now) const {
  const auto most = allowed();
  if (!most || !last_ || now - *last_ <= *most) return std::nullopt;
  Hang hang;
  hang.silent = now - *last_;
  hang.allowed = *most;
  hang.usual = quantile({gaps_.begin(), gaps_.end()}, 0.5);
  return hang;
}

std::string Progress::Hang::text() const {
  return "no progress for " + seconds_text(silent) + "; usually there is progress every " + seconds_text(usual);
}

}  // namespace gridctl::job
