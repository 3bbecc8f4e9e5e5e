// SPDX-License-Identifier: Apache-2.0
// How many replicas a service shall have, by the requests that are under way, or by how many come in a second. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.hpp"
#include "job/service.hpp"

namespace gridctl::control {

class Scaler {
 public:
  // `replicas_max`: of the file; `before`: as many as there were when the gateway before this one ended, or 0.
  Scaler(const job::Service& service, int replicas_max, int before, bool was_asleep);

  // `under_way`: requests at replicas and in queues, now. `requests`: all that ever came to replicas. `serves`: a
  // replica is ready. To be told often.
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
