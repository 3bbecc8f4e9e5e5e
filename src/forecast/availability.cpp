// SPDX-License-Identifier: Apache-2.0
#include "forecast/availability.hpp"

#include <algorithm>

namespace gridctl::forecast {

Availability::Availability(double rate_per_second, double outage_seconds, Random random)
    : rate_(rate_per_second), outage_(outage_seconds), random_(random) {
  if (rate_ > 0) next_ = random_.exponential(1 / rate_);
}

Availability::Availability(std::shared_ptr<const UpTimes> recorded, double offset)
    : up_(recorded->up), recorded_(std::move(recorded)), base_(-offset) {
  const auto& changes = recorded_->changes;
  if (changes.empty()) return;
  const auto later = std::upper_bound(changes.begin(), changes.end(), offset,
                                      [](double at, const UpTimes::Change& change) { return at < change.at; });
  index_ = static_cast<std::size_t>(later - changes.begin());
  up_ = (index_ == 0 ? changes.back() : changes[index_ - 1]).up;
  if (index_ == changes.size()) {
    index_ = 0;
    base_ += recorded_->length;
  }
  next_ = base_ + changes[index_].at;
}

void Availability::pass() {
  if (recorded_ == nullptr) {
    up_ = !up_;
    next_ += random_.exponential(up_ ? 1 / rate_ : outage_);
    return;
  }
  up_ = recorded_->changes[index_].up;
  if (++index_ == recorded_->changes.size()) {
    index_ = 0;
    base_ += recorded_->length;
  }
  next_ = base_ + recorded_->changes[index_].at;
}

}  // namespace gridctl::forecast
