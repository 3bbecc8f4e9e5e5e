// SPDX-License-Identifier: Apache-2.0
// Time that passes when the test says so.
#pragma once

#include "os/clock.hpp"

namespace gridctl::control::testing {

class HandClock final : public os::Clock {
 public:
  [[nodiscard]] BootTime boot() const override { return now_; }
  [[nodiscard]] WallTime wall() const override { return {1'795'000'000'000 + now_.ns / 1'000'000}; }
  void pass(Duration time) { now_ = now_ + time; }

 private:
  BootTime now_{3'600'000'000'000};
};

}  // namespace gridctl::control::testing
