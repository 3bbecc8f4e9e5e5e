// SPDX-License-Identifier: Apache-2.0
#include "job/silence.hpp"

#include <algorithm>

namespace gridctl::job {

void Silence::answered(BootTime now) {
  counted_ = Duration::zero();
  last_tick_ = now;
}

void Silence::tick(BootTime now, bool others_answer) {
  const Duration gap = last_tick_.ns == 0 ? Duration::zero() : now - last_tick_;
  last_tick_ = now;
  // After a long gap even the others' last answers are old news: count nothing until a normal tick confirms.
  if (others_answer && gap <= tick_max_) counted_ += std::max(gap, Duration::zero());
}

Liveness Silence::judge(Duration lost_after) const {
  if (counted_ >= lost_after) return Liveness::lost;
  if (counted_ * 3 >= lost_after * 2) return Liveness::unreachable;
  if (counted_ * 3 >= lost_after) return Liveness::suspect;
  return Liveness::answering;
}

}  // namespace gridctl::job
