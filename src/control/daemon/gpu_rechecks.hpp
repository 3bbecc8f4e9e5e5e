// SPDX-License-Identifier: Apache-2.0
// Challenges GPUs briefly between jobs, at times that no host can predict: a GPU that passed once may be a different
// one today.
#pragma once

#include <map>
#include <string>

#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "control/measure/bench.hpp"
#include "control/reach/host_access.hpp"
#include "os/executor.hpp"
#include "registry/host_records.hpp"

namespace gridctl::control {

class GpuRechecks {
 public:
  // `every`: the mean time between two challenges of a host; 0: never.
  GpuRechecks(os::Executor& run, os::Clock& clock, registry::HostRecords& registry, Fleet& fleet, const JobBook& book,
              std::function<HostAccess(const FleetHost&)> access, Duration every)
      : run_(run),
        clock_(clock),
        registry_(registry),
        fleet_(fleet),
        book_(book),
        access_(std::move(access)),
        every_(every) {}

  void tick(BootTime now);

 private:
  [[nodiscard]] bool is_idle(const FleetHost& host) const;
  void recheck(const FleetHost& host, const BenchReport& before);
  void rechecked(const HostName& name, const BenchReport& before, const Result<BenchReport>& found);

  os::Executor& run_;
  os::Clock& clock_;
  registry::HostRecords& registry_;
  Fleet& fleet_;
  const JobBook& book_;
  std::function<HostAccess(const FleetHost&)> access_;
  const Duration every_;
  std::map<std::string, BootTime> next_;  // by name of the host
  bool under_way_ = false;
};

}  // namespace gridctl::control
