// SPDX-License-Identifier: Apache-2.0
// How many replicas a service shall have, by the requests that are under way. Pure.
#pragma once

#include <deque>

#include "base/time.hpp"
#include "job/service.hpp"

namespace gridctl::control {

class Scaler {
 public:
  // `replicas_max`: of the file; `before`: as many as there were when the gateway before this one ended, or 0.
  Scaler(const job::Service& service, int replicas_max, int before);

  // `under_way`: requests at replicas and in queues, now. To be told often.
  void see(BootTime now, std::uint64_t under_way);
  [[nodiscard]] int wanted() const { return wanted_; }

 private:
  struct Sample {
    BootTime at;
    double under_way;
  };
  [[nodiscard]] int asked_for() const;

  const job::Service service_;
  const int most_;
  int wanted_;
  std::deque<Sample> samples_;
  double sum_ = 0;
  BootTime calm_since_{}, busy_since_{};  // since when fewer, or more, would do
  bool calm_ = false, busy_ = false;
};

}  // namespace gridctl::control
