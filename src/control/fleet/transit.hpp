// SPDX-License-Identifier: Apache-2.0
// How long what a host has said was on its way. What it tells by itself lies in its network buffers while the line is
// cut, and says "ended just now" when it comes, minutes later.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// The delays of one connection, by the difference of two boot clocks: the least one ever seen stands for no delay at
// all, and may grow as clocks drift apart (0.05 %).
class Transit {
 public:
  // `sent` by the host's boot clock, `got` by ours. Never more than the age of the connection, whatever the host says.
  Duration took(BootTime sent, BootTime got);

 private:
  std::optional<Duration> least_;
  BootTime begun_{}, last_{};
};

// Everything in it is so much longer ago, and so much less is left of what it is allowed. What was hardly late stays.
void make_older(wire::PollReply& reply, Duration late);

}  // namespace gridctl::control
