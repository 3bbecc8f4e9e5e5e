// SPDX-License-Identifier: Apache-2.0
// Sees to it that each service has its gateway, a process that outlives this daemon.
#pragma once

#include <map>
#include <string>

#include "control/follow/job_book.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "os/executor.hpp"

namespace gridctl::control {

class Gateways {
 public:
  Gateways(os::Executor& run, os::Clock& clock, const JobBook& jobs, Paths paths);

 private:
  void tick();
  void start(const JobId& service);

  os::Clock& clock_;
  const JobBook& jobs_;
  const Paths paths_;
  std::map<std::string, BootTime> started_;  // by service: a gateway takes a moment until it can be seen
  os::Executor::Timer timer_;
};

}  // namespace gridctl::control
