// SPDX-License-Identifier: Apache-2.0
// When a job has used up what its file allows. Pure. A limit stops a job as a cancellation does: one path that saves
// first, and `job resume` goes on with more.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

inline constexpr std::string_view k_limit_leader = "leader_ended";  // why a twin was stopped

inline constexpr std::string_view k_limit_scale = "scaled_down";    // why a replica was stopped: fewer will do

// The limits in a job's file that have to be watched while it runs.
struct JobLimits {
  std::optional<double> budget;     // USD
  std::optional<Duration> most;     // running time of all attempts together
  std::optional<WallTime> until{};  // its deadline
  bool hard = false;                // it is stopped then
  [[nodiscard]] bool any() const { return budget || most || until; }
};
[[nodiscard]] JobLimits limits_of(const job::Spec& spec, WallTime submitted_at);

// The used amounts of a job, by times since boot: the registry counts by the wall clock, which may be set while it
// runs.
class SpendMeter {
 public:
  using Ask = std::function<Result<registry::Spent>(WallTime until)>;
  // `ask`: the registry, which counts until an instant of the wall clock. What it counts more than last time is
  // believed, also hours at once (a host that was silent tells what it ran meanwhile), but not what the wall clock was
  // set by. `running`: epoch of the attempt that runs; 0 while none does. Errors: those of `ask`.
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

// The attempt whose time is counted: of a job that is running.
[[nodiscard]] Epoch counted_epoch(const job::State& state);

// USD of a budget that are kept back for saving and stopping what costs so much an hour: never more than a tenth of it.
[[nodiscard]] double reserve_of(double budget, double usd_per_hour);

// A job with a budget is stopped early enough to save and stop within it. `more_usd`: counted, though not spent yet.
[[nodiscard]] std::optional<job::LimitReached> judge_limits(const job::State& state, const JobLimits& limits,
                                                            const registry::Spent& spent, WallTime now,
                                                            double more_usd = 0);
// A deadline that is not hard has passed, and nobody was told.
[[nodiscard]] std::optional<job::DeadlinePassed> judge_late(const job::State& state, const JobLimits& limits,
                                                            WallTime now);

}  // namespace gridctl::control
