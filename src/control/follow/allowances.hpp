// SPDX-License-Identifier: Apache-2.0
// The limits that hosts receive for the jobs that they run, so that the limits hold with nobody watching. Loop thread
// only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "control/fleet/host_monitor.hpp"
#include "control/follow/budgets.hpp"
#include "control/follow/dealing.hpp"
#include "control/follow/job_book.hpp"
#include "control/follow/limits.hpp"

namespace gridctl::control {

class Allowances {
 public:
  Allowances(const World& world, JobBook& book) : world_(world), book_(book) {}

  // For START: `run` counts from when its program runs. nullopt: nothing limits it.
  struct AtStart {
    std::optional<Duration> run;
    std::string run_limit;
    std::optional<BootTime> time_until;
  };
  [[nodiscard]] std::optional<AtStart> at_start(const TrackedJob& job);
  // Limits of a running attempt. nullopt: its host keeps the limits that it has.
  [[nodiscard]] std::optional<HostMonitor::AttemptLimits> running(const TrackedJob& job);
  // A host has told of the current attempt of this job, and what is left to it of running.
  void reported(const TrackedJob& job, std::optional<Duration> left);
  void forgotten(const JobId& id);
  // Whether anything limits what this job may still use.
  [[nodiscard]] bool concern(const TrackedJob& job);

 private:
  struct Left {
    std::optional<Duration> run;
    std::string limit;
    bool whole = false;  // what was used could not be read: as if nothing had been
    void lessen(Duration by, std::string_view of);
  };
  [[nodiscard]] Left left_of(const TrackedJob& job);
  void lessen_by_months(const TrackedJob& job, Left& left);
  [[nodiscard]] Duration slice_from(const BudgetNow& budget, const TrackedJob& job);
  [[nodiscard]] const std::vector<BudgetNow>& budgets();
  [[nodiscard]] double price_with_twins(const TrackedJob& leader) const;
  [[nodiscard]] std::optional<BootTime> deadline_of(const TrackedJob& job) const;

  const World world_;
  JobBook& book_;
  Dealing dealing_;
  std::map<std::string, SpendMeter> meters_;                 // by job
  std::map<std::string, HostMonitor::AttemptLimits> told_;          // by attempt
  std::vector<BudgetNow> budgets_;
  std::optional<BootTime> budgets_at_;
};

}  // namespace gridctl::control
