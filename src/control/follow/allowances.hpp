// SPDX-License-Identifier: Apache-2.0
// Computes the limits that hosts receive for their jobs, so that the limits hold even if nobody is watching. Loop
// thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "control/fleet/host_monitor.hpp"
#include "control/follow/budgets.hpp"
#include "control/follow/dealing.hpp"
#include "control/follow/job_book.hpp"
#include "control/follow/limits.hpp"

namespace gridctl::control {

// Returns the USD per hour of a job and its twins. The workers of a bag share the price of a host.
[[nodiscard]] double price_with_twins(const JobBook& book, const TrackedJob& leader);

class Allowances {
 public:
  Allowances(const World& world, JobBook& book) : world_(world), book_(book) {}

  // Holds the limits for START: `run` counts from the start of the job's program. nullopt: no limit.
  struct AtStart {
    std::optional<Duration> run;
    std::string run_limit;
    std::optional<BootTime> time_until;
    bool waits = false;  // others hold what is left: it would end at once, and begins when they have given
  };
  [[nodiscard]] std::optional<AtStart> at_start(const TrackedJob& job);
  // Returns the limits of a running attempt. nullopt: its host keeps its present limits.
  [[nodiscard]] std::optional<HostMonitor::AttemptLimits> running(const TrackedJob& job);
  // A host has reported the remaining running time of this job's current attempt.
  void reported(const TrackedJob& job, std::optional<Duration> left);
  void forgotten(const JobId& id);
  // Returns whether anything limits what this job may still use.
  [[nodiscard]] bool concern(const TrackedJob& job);

 private:
  struct Left {
    std::optional<Duration> run;
    std::string limit;
    bool whole = false;  // what was used could not be read: as if nothing had been
    bool keeps = false;  // others may hold all that is left: what it was told by a daemon before us stays
    bool waits = false;  // it is not worth to begin with: others hold what is left, until they are told to do with less
    void lessen(Duration by, std::string_view of);
  };
  [[nodiscard]] Left left_of(const TrackedJob& job);
  void lessen_by_months(const TrackedJob& job, Left& left);
  // Describes an amount, in USD, that several attempts use up together.
  struct Pool {
    double left = 0;
    double reserve = 0;  // kept back of it, for saving and stopping
    Duration most{};     // of one slice
    bool used_up = false;
  };
  struct Payers {
    double usd_per_hour = 0;  // of all
    double held_by_others = 0;
    Duration own{};           // that it and those which share its host hold, as they know it themselves
    bool is_known = false;    // what it holds itself
    bool alone = true;
  };
  using Counts = std::function<bool(const TrackedJob&)>;
  [[nodiscard]] Payers payers(const TrackedJob& job, const Counts& counts);
  [[nodiscard]] Duration slice_from(const Pool& pool, const Payers& payers, const TrackedJob& job) const;
  [[nodiscard]] Duration slice_of_month(const BudgetNow& budget, const TrackedJob& job);
  void lessen_by_total(const TrackedJob& job, const TrackedJob& leader, double spent_usd, Left& left);
  [[nodiscard]] const std::vector<BudgetNow>& budgets();
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
