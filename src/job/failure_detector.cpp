// SPDX-License-Identifier: Apache-2.0
#include "job/failure_detector.hpp"

#include <algorithm>

namespace gridctl::job {

namespace {
constexpr Duration k_tick_counts = std::chrono::seconds{1};  // at most: the rest may have been our own slumber
}

void FailureDetector::answered(BootTime now) {
  counted_ = Duration::zero();
  last_tick_ = now;
}

void FailureDetector::tick(BootTime now, bool others_answer) {
  const Duration gap = last_tick_.ns == 0 ? Duration::zero() : now - last_tick_;
  last_tick_ = now;
  // This machine slept: a host that was silent before may have answered long since, and is asked again for the usual
  // time.
  if (gap > tick_max_) counted_ = Duration::zero();
  // After a long gap, even the others' last answers are old: nothing counts until a normal tick confirms.
  if (others_answer && gap <= tick_max_) counted_ += std::clamp(gap, Duration::zero(), k_tick_counts);
}

Liveness FailureDetector::judge(Duration lost_after) const {
  if (counted_ >= lost_after) return Liveness::lost;
  if (counted_ * 3 >= lost_after * 2) return Liveness::unreachable;
  if (counted_ * 3 >= lost_after) return Liveness::suspect;
  return Liveness::answering;
}

}  // namespace gridctl::job
