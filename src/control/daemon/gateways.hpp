// SPDX-License-Identifier: Apache-2.0
// Makes sure that each service has its gateway, a process that outlives this daemon, and tells the replicas' state
// machines what the gateway sees: which servers are ready, and which never become ready.
#pragma once

#include <map>
#include <string>

#include "control/follow/job_book.hpp"
#include "control/serve/gateway_files.hpp"
#include "os/clock.hpp"
#include "os/executor.hpp"

namespace gridctl::control {

class Gateways {
 public:
  Gateways(os::Executor& run, os::Clock& clock, JobBook& jobs, GatewayAccess& access);

 private:
  void tick();
  void start(const JobId& service);
  void note_wanted(TrackedJob& leader, int wanted);
  void dismiss(const JobId& service, const job::Spec& spec, const GatewayInfo& info);
  void sleep_or_wake(const JobId& service, const GatewayInfo& info);
  [[nodiscard]] bool is_needless(const JobId& service, int wanted, int version, const GatewayInfo& info) const;
  [[nodiscard]] bool is_settled(const JobId& service, int wanted, int version) const;
  void tell(const JobId& service, const job::Spec& spec);

  os::Clock& clock_;
  JobBook& jobs_;
  GatewayAccess& access_;
  std::map<std::string, BootTime> leaving_;  // since when replicas are too many
  std::map<std::string, BootTime> started_;  // by service: a gateway takes a moment until it can be seen
  os::Executor::Timer timer_;
};

}  // namespace gridctl::control
