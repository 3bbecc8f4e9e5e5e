// SPDX-License-Identifier: Apache-2.0
// A link whose answers stand there before.
#pragma once

#include <deque>
#include <vector>

#include "wire/frame.hpp"

namespace gridctl::control {

struct Answers final : wire::Link {
  Result<void> send(const wire::Frame& frame, BootTime deadline) override {
    sent.push_back(frame);
    deadlines.push_back(deadline);
    return {};
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    deadlines.push_back(deadline);
    if (frames.empty()) return make_error(Code::timed_out, "no answer in time");
    const wire::Frame first = frames.front();
    frames.pop_front();
    return first;
  }
  std::deque<wire::Frame> frames;
  std::vector<wire::Frame> sent;
  std::vector<BootTime> deadlines;
};

}  // namespace gridctl::control
