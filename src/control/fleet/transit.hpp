// SPDX-License-Identifier: Apache-2.0
// Measures how long a host's messages were in transit. A message lies in the host's network buffers while the
// connection is cut, and says "ended just now" when it arrives minutes later.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// Tracks the delays of one connection by the difference of two boot clocks: the smallest difference ever seen counts as
// no delay, and may grow as clocks drift apart (0.05 %).
class Transit {
 public:
  // `sent` is by the host's boot clock, `got` by ours. Returns at most the connection's age, whatever the host says.
  Duration took(BootTime sent, BootTime got);

 private:
  std::optional<Duration> least_;
  BootTime begun_{}, last_{};
};

// Shifts every time in the reply back by `late`, and reduces what is left of its limits. A reply that is hardly late
// stays unchanged.
void make_older(wire::PollReply& reply, Duration late);

}  // namespace gridctl::control
