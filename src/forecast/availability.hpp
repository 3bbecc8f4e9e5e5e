// SPDX-License-Identifier: Apache-2.0
// Determines when one host is up and when it is down during one run. Pure; the random values do not depend on the job's
// actions, so that all choices face the same failures.
#pragma once

#include <limits>
#include <memory>

#include "forecast/random.hpp"
#include "forecast/trace.hpp"

namespace gridctl::forecast {

class Availability {
 public:
  // Starts up; fails after exponential times of this rate (per second, 0 = never), and is away for exponential times of
  // this mean (seconds, 0 = it is back at once).
  Availability(double rate_per_second, double outage_seconds, Random random);
  // Follows a record, from `offset` seconds into the trace on.
  Availability(std::shared_ptr<const UpTimes> recorded, double offset);

  [[nodiscard]] bool up() const { return up_; }
  // Returns the seconds from the beginning of the run to the next change, or infinity if there is none.
  [[nodiscard]] double next() const { return next_; }
  void pass();  // that change

 private:
  static constexpr double k_never = std::numeric_limits<double>::infinity();
  bool up_ = true;
  double next_ = k_never;
  // Used by rate:
  double rate_ = 0, outage_ = 0;
  Random random_{0};
  // Used with a record:
  std::shared_ptr<const UpTimes> recorded_;
  std::size_t index_ = 0;  // of the next change
  double base_ = 0;        // seconds of the run at which the trace (this time) began
};

}  // namespace gridctl::forecast
