// SPDX-License-Identifier: Apache-2.0
#include "sched/gang_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "sched/gang.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t k_compared_max = 4000;  // hosts; comparing more of them with each other costs more than it saves

double or_infinite(double rate) { return rate > 0 ? rate : k_infinite; }
double or_unknown(double rate) { return std::isinf(rate) ? 0 : rate; }
}  // namespace

// Sums over the members chosen so far.
struct GangSearch::Sum {
  std::size_t count = 0;
  double price = 0, failures = 0, speed = k_infinite, start = 0, down = k_infinite, up = k_infinite;
  [[nodiscard]] Sum with(const HostGroup& one) const {
    return {count + 1,
            price + one.price_per_hour,
            failures + one.failures_per_hour,
            std::min(speed, one.speed),
            std::max(start, one.start),
            std::min(down, one.down),
            std::min(up, one.up)};
  }
};

void GangSearch::add(const Candidate& candidate) {
  One one{ones_.size(), group_of(*candidate.host, candidate.gpus), candidate.host->name.value};
  one.group.down = or_infinite(one.group.down);
  one.group.up = or_infinite(one.group.up);
  ones_.push_back(std::move(one));
}

Aim GangSearch::aim_of_set(const HostGroup& group) const {
  return aim_of(optimize_, to_finish(task_, group), group.failures_per_hour);
}

// Returns true if another is at least as good in every respect, and not the same: the earlier of two equal ones wins.
bool GangSearch::dominated(std::size_t at, bool (*better)(const One&, const One&)) const {
  std::size_t dominators = 0;
  for (std::size_t i = 0; i < ones_.size(); ++i) {
    if (i == at || !better(ones_[i], ones_[at])) continue;
    const bool equal = better(ones_[at], ones_[i]);
    if ((!equal || i < at) && ++dominators >= wanted_) return true;
  }
  return false;
}

// A set with a host that has as many dominators as there are members can be improved by one of them.
void GangSearch::leave_out_dominated() {
  if (ones_.size() > k_compared_max) return;
  const auto better = [](const One& a, const One& b) {
    return a.group.price_per_hour <= b.group.price_per_hour && a.group.failures_per_hour <= b.group.failures_per_hour &&
           a.group.speed >= b.group.speed && a.group.start <= b.group.start && a.group.down >= b.group.down &&
           a.group.up >= b.group.up;
  };
  std::vector<One> kept;
  for (std::size_t i = 0; i < ones_.size(); ++i)
    if (!dominated(i, better)) kept.push_back(ones_[i]);
  ones_ = std::move(kept);
}

// No completion of the choice can be better than this: the cheapest, most reliable and fastest of the rest at once.
HostGroup GangSearch::hoped(std::size_t from, const Sum& sum) const {
  const std::size_t missing = wanted_ - sum.count;
  HostGroup group;
  group.price_per_hour = sum.price + (price_sum_[from + missing] - price_sum_[from]);
  group.failures_per_hour = sum.failures + (missing == 0 ? 0 : static_cast<double>(missing) * least_failures_[from]);
  group.speed = static_cast<double>(wanted_) * std::min(sum.speed, missing == 0 ? sum.speed : most_speed_[from]);
  group.start = sum.start;
  group.down = or_unknown(sum.down);
  group.up = or_unknown(sum.up);
  return group;
}

void GangSearch::descend(std::size_t from, const Sum& sum) {
  if (sum.count == wanted_) {
    const Aim aim = aim_of_set(hoped(from, sum));
    if (best_.empty() || aim < best_aim_) {
      best_ = chosen_;
      best_aim_ = aim;
    }
    return;
  }
  for (std::size_t i = from; i + (wanted_ - sum.count) <= ones_.size(); ++i) {
    if (++steps_ > k_gang_steps_max && !best_.empty()) return;
    const bool clash = conflicts_ && std::ranges::any_of(chosen_, [&](std::size_t other) {
                         return (*conflict_)(ones_[i].index, ones_[other].index);
                       });
    if (clash) continue;
    // First bounds all sets with this host or a later one, then the sets with this host: a later one may be faster or
    // more reliable.
    if (!best_.empty() && !(aim_of_set(hoped(i, sum)) < best_aim_)) return;
    const Sum next = sum.with(ones_[i].group);
    if (!best_.empty() && !(aim_of_set(hoped(i + 1, next)) < best_aim_)) continue;
    chosen_.push_back(i);
    descend(i + 1, next);
    chosen_.pop_back();
  }
}

std::optional<GangSearch::Found> GangSearch::best(const std::function<bool(std::size_t, std::size_t)>& conflict) {
  conflict_ = &conflict;
  std::ranges::sort(ones_, [](const One& a, const One& b) {
    return std::tie(a.group.price_per_hour, a.name) < std::tie(b.group.price_per_hour, b.name);
  });
  for (std::size_t i = 0; i < ones_.size() && !conflicts_; ++i)
    for (std::size_t j = 0; j < i && !conflicts_; ++j) conflicts_ = conflict(ones_[i].index, ones_[j].index);
  if (!conflicts_) leave_out_dominated();
  if (ones_.size() < wanted_) return std::nullopt;
  const std::size_t n = ones_.size();
  price_sum_.assign(n + 1, 0);
  least_failures_.assign(n + 1, k_infinite);
  most_speed_.assign(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) price_sum_[i + 1] = price_sum_[i] + ones_[i].group.price_per_hour;
  for (std::size_t i = n; i-- > 0;) {
    least_failures_[i] = std::min(least_failures_[i + 1], ones_[i].group.failures_per_hour);
    most_speed_[i] = std::max(most_speed_[i + 1], ones_[i].group.speed);
  }
  descend(0, {});
  if (best_.empty()) return std::nullopt;
  Found found;
  Sum sum;
  for (const std::size_t at : best_) {
    found.members.push_back(ones_[at].index);
    sum = sum.with(ones_[at].group);
  }
  found.group = hoped(n, sum);
  found.estimate = to_finish(task_, found.group);
  found.exact = steps_ <= k_gang_steps_max;
  return found;
}

}  // namespace gridctl::sched
