// SPDX-License-Identifier: Apache-2.0
// Decides how many replicas a service should have, by the requests under way or by the requests per second. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.hpp"
#include "job/service.hpp"

namespace gridctl::control {

class Scaler {
 public:
  // `replicas_max`: from the file. `before`: the number of replicas when the previous gateway ended, or 0.
  Scaler(const job::Service& service, int replicas_max, int before, bool was_asleep);

  // `under_way`: requests at replicas and in queues, now. `requests`: all that ever reached replicas. `serves`: a
  // replica is ready. Call it often.
  void see(BootTime now, std::uint64_t under_way, std::uint64_t requests, bool serves);
  [[nodiscard]] int wanted() const { return wanted_; }
  [[nodiscard]] bool is_asleep() const { return asleep_; }  // then not even one is wanted

 private:
  struct Sample {
    BootTime at;
    double under_way;
    std::uint64_t requests;  // so far
  };
  [[nodiscard]] int asked_for() const;
  [[nodiscard]] double load() const;  // in replicas
  void rest(BootTime now, bool is_idle);

  const job::Service service_;
  const int most_;
  int wanted_;
  std::deque<Sample> samples_;
  double sum_ = 0;
  BootTime calm_since_{}, busy_since_{};  // since when fewer, or more, would do
  bool calm_ = false, busy_ = false;
  bool asleep_;
  std::uint64_t requests_ = 0;
  std::optional<BootTime> idle_since_;  // the one replica that is left is ready, and nobody asks
};

}  // namespace gridctl::control
