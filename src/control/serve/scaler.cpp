// SPDX-License-Identifier: Apache-2.0
#include "control/serve/scaler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gridctl::control {

namespace {
constexpr Duration k_mean_of = std::chrono::minutes{1};
constexpr Duration k_between_samples = std::chrono::milliseconds{200};
}  // namespace

Scaler::Scaler(const job::Service& service, int replicas_max, int before, bool was_asleep)
    : service_(service),
      most_(replicas_max),
      wanted_(service.replicas_min == 0
                  ? replicas_max
                  : std::clamp(before, std::min(service.replicas_min, replicas_max), replicas_max)),
      asleep_(service.sleeps && was_asleep) {}

// Returns the mean of the last minute, or of the time needed to be sure that more are needed.
double Scaler::load() const {
  if (samples_.empty()) return 0;
  if (service_.scale_rate <= 0) return sum_ / static_cast<double>(samples_.size()) / service_.scale_concurrency;
  const Sample &first = samples_.front(), &last = samples_.back();
  const double passed = gridctl::seconds(last.at - first.at);
  // A restarted HAProxy counts from 0.
  if (passed <= 0 || last.requests < first.requests) return static_cast<double>(wanted_);
  return static_cast<double>(last.requests - first.requests) / passed / service_.scale_rate;
}

int Scaler::asked_for() const {
  return std::clamp(static_cast<int>(std::ceil(load() - 1e-9)), service_.replicas_min, most_);
}

// A replica that is loading is not idle: the client that woke it may have given up, and the next one would have to wake
// it again.
void Scaler::rest(BootTime now, bool is_idle) {
  if (!is_idle) return idle_since_.reset();
  if (!idle_since_) idle_since_ = now;
  asleep_ = asleep_ || now - *idle_since_ >= service_.down_after;
}

void Scaler::see(BootTime now, std::uint64_t under_way, std::uint64_t requests, bool serves) {
  const bool asked = under_way > 0 || std::exchange(requests_, requests) != requests;
  if (asked) asleep_ = false;
  if (service_.sleeps) rest(now, !asked && serves && wanted_ == 1);
  if (service_.replicas_min == 0 || (service_.scale_concurrency <= 0 && service_.scale_rate <= 0)) return;
  if (!samples_.empty() && now - samples_.back().at < k_between_samples) return;
  samples_.push_back({now, static_cast<double>(under_way), requests});
  sum_ += samples_.back().under_way;
  const Duration window = std::min<Duration>(k_mean_of, std::max<Duration>(service_.up_after, k_between_samples));
  while (now - samples_.front().at > window) {
    sum_ -= samples_.front().under_way;
    samples_.pop_front();
  }
  const int needed = asked_for();
  const bool busy = needed > wanted_, calm = needed < wanted_;
  if (busy && !std::exchange(busy_, true)) busy_since_ = now;
  if (calm && !std::exchange(calm_, true)) calm_since_ = now;
  busy_ = busy;
  calm_ = calm;
  if (busy_ && now - busy_since_ >= service_.up_after) {
    wanted_ = needed;
    busy_ = false;
  } else if (calm_ && now - calm_since_ >= service_.down_after) {
    --wanted_;  // one at a time: a load that comes back finds most of them
    calm_ = false;
  }
}

}  // namespace gridctl::control
