// SPDX-License-Identifier: Apache-2.0
// Hosts and jobs of the tests.
#pragma once

#include <string>
#include <utility>

#include "forecast/hosts_file.hpp"
#include "forecast/life.hpp"

namespace gridctl::forecast {

// Times in seconds. Interval 0: none.
inline job::Spec a_job(double interval) {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  using Interval = job::CheckpointPolicy::Interval;
  spec.checkpoint.interval = interval > 0 ? Interval::fixed : Interval::off;
  spec.checkpoint.every = std::chrono::nanoseconds{static_cast<std::int64_t>(interval * 1e9)};
  return spec;
}

class AHost {
 public:
  explicit AHost(std::string name) : host_(host_for(a_job(0), name, "home")) {
    host_.rate_per_hour = 0;
    host_.outage = host_.start = host_.upload = host_.restore = 0;
  }
  AHost failing(double mtbf, double outage) && {
    host_.rate_per_hour = 3600 / mtbf;
    host_.outage = outage;
    return std::move(*this);
  }
  AHost starting(double start) && {
    host_.start = start;
    return std::move(*this);
  }
  AHost set(auto change) && {
    change(host_);
    return std::move(*this);
  }
  operator HostModel() && { return std::move(host_); }  // NOLINT: reads as a value

 private:
  HostModel host_;
};
inline AHost a_host(std::string name) { return AHost(std::move(name)); }

}  // namespace gridctl::forecast
