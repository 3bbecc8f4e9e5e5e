// SPDX-License-Identifier: Apache-2.0
// Decides when a job has used up what its file allows. Pure. A limit stops a job like a cancellation: one path that
// saves first, after which `job resume` continues with more.
#pragma once

#include <functional>
#include <optional>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

inline constexpr std::string_view k_limit_leader = "leader_ended";  // why a twin was stopped

inline constexpr std::string_view k_limit_scale = "scaled_down";    // why a replica was stopped: fewer will do

// Lists the limits in a job's file that are watched while it runs.
struct JobLimits {
  std::optional<double> budget;     // USD
  std::optional<Duration> most;     // running time of all attempts together
  std::optional<WallTime> until{};  // its deadline
  bool hard = false;                // it is stopped then
  [[nodiscard]] bool any() const { return budget || most || until; }
};
[[nodiscard]] JobLimits limits_of(const job::Spec& spec, WallTime submitted_at);

// Measures the used amounts of a job by time since boot: the registry counts by the wall clock, which may be set while
// the job runs.
class SpendMeter {
 public:
  using Ask = std::function<Result<registry::Spent>(WallTime until)>;
  // `ask`: asks the registry, which counts until an instant of the wall clock. Every increase since the last count is
  // accepted, even hours at once (a silent host later reports what it ran), except the part caused by setting the wall
  // clock. `running`: epoch of the running attempt, or 0. Errors: those of `ask`.
  [[nodiscard]] Result<registry::Spent> read(const Ask& ask, Epoch running, double price_per_hour, BootTime now,
                                             WallTime wall);

 private:
  struct Look {
    registry::Spent spent, told;
    Epoch running;
    BootTime now;
    WallTime wall;
  };
  std::optional<Look> last_;
  Duration off_{};  // the wall clock was set by so much since the attempt began
};

// Returns the attempt whose time counts, for a running job.
[[nodiscard]] Epoch counted_epoch(const job::State& state);

// Returns the USD of a budget to reserve for saving and stopping at this hourly cost: never more than a tenth of the
// budget.
[[nodiscard]] double reserve_of(double budget, double usd_per_hour);

// Stops a job with a budget early enough that it can save and stop within it. `more_usd`: counted, although not spent
// yet.
[[nodiscard]] std::optional<job::LimitReached> judge_limits(const job::State& state, const JobLimits& limits,
                                                            const registry::Spent& spent, WallTime now,
                                                            double more_usd = 0);
// Reports a soft deadline that has passed, unless it was already reported.
[[nodiscard]] std::optional<job::DeadlinePassed> judge_late(const job::State& state, const JobLimits& limits,
                                                            WallTime now);

}  // namespace gridctl::control
