// SPDX-License-Identifier: Apache-2.0
// Computes the limits that hosts receive for their jobs, so that the limits hold even if nobody is watching. Loop
// thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "control/fleet/host_monitor.hpp"
#include "control/follow/budgets.hpp"
#include "control/follow/job_book.hpp"
#include "control/follow/limits.hpp"

namespace gridctl::control {

// Divides a budget that several running jobs share into slices for their hosts, so that unreachable hosts never spend
// more than the budget together. Pure.
// Tracks the amounts that attempts may still use up, by key. A slice counts as held until the host reports that it
// holds less.
class Dealing {
 public:
  struct Slice {
    double usd_per_hour = 0;
    BootTime told;   // until then it may run, as was told last
    BootTime until;  // until then it may run, as far as we can know
    bool assumed = false;  // nobody here has told it anything, and it has not told us either
  };
  // The attempt is already running, and its limits are unknown: it may hold everything until its lease ends.
  void assume(const std::string& key, double usd_per_hour, BootTime lease_ends);
  // Tells the attempt that it may run until then.
  void tell(const std::string& key, double usd_per_hour, BootTime until);
  // The host reports until when the attempt may run; nullopt: it keeps to its last limit, as far as we know.
  void reported(const std::string& key, std::optional<BootTime> until);
  void forget(const std::string& key) { slices_.erase(key); }
  template <class Keep>
  void keep_only(Keep keep) {
    std::erase_if(slices_, [&](const auto& entry) { return !keep(entry.first); });
  }
  [[nodiscard]] bool knows(const std::string& key) const { return slices_.contains(key); }
  // Returns the USD that this attempt may still cost from now on.
  [[nodiscard]] double held(const std::string& key, BootTime now) const;
  // Returns how long the attempt may still run by a limit it is known to have, from us or from its own report; nullopt:
  // the limit is only assumed.
  [[nodiscard]] std::optional<Duration> known_left(const std::string& key, BootTime now) const;

 private:
  std::map<std::string, Slice> slices_;
};

// Returns how long one more slice lasts: a share of `left_usd` in proportion to the price of all, but never more than
// the others leave free, and no longer than `most`.
[[nodiscard]] Duration slice_of(double left_usd, double held_by_others_usd, double usd_per_hour,
                                double usd_per_hour_of_all, Duration most);

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
