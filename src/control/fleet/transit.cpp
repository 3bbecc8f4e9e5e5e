// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/transit.hpp"

#include <algorithm>

namespace gridctl::control {

namespace {
constexpr int k_drift = 2000;                                  // clocks drift by one part in so many at most
constexpr Duration k_hardly = std::chrono::milliseconds{300};  // as any link and loop may take
}  // namespace

Duration Transit::took(BootTime sent, BootTime got) {
  const Duration apart{got.ns - sent.ns};
  if (!least_) begun_ = got;
  least_ = least_ ? std::min(apart, *least_ + (got - last_) / k_drift) : apart;
  last_ = got;
  return std::min(apart - *least_, got - begun_);
}

void make_older(wire::PollReply& reply, Duration late) {
  if (late < k_hardly) return;
  const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(late).count();
  for (wire::AttemptStatus& status : reply.attempts) wire::make_older(status, ms);
}

}  // namespace gridctl::control
