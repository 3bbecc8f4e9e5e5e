// SPDX-License-Identifier: Apache-2.0
// When a job has used up what its file allows. Pure.
#pragma once

#include <optional>
#include <utility>

#include "base/time.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

inline constexpr std::string_view k_limit_leader = "leader_ended";  // why a replica was stopped

// Of a job's file, what has to be watched while it runs.
struct Limits {
  std::optional<double> budget;     // USD
  std::optional<Duration> most;     // running time of all attempts together
  std::optional<WallTime> until{};  // its deadline
  bool hard = false;                // it is stopped then
  [[nodiscard]] bool any() const { return budget || most || until; }
};
[[nodiscard]] Limits limits_of(const job::Spec& spec, WallTime submitted_at);

// What a job has used, by times since boot: the registry counts by the wall clock, which may be set while it runs.
class SpendMeter {
 public:
  // `told`: by the registry. It is believed at first, and then as far as the time since boot allows.
  [[nodiscard]] registry::Spent read(const registry::Spent& told, double price_per_hour, BootTime now);

 private:
  std::optional<std::pair<registry::Spent, BootTime>> last_;
};

// USD of a budget that are kept back for saving and stopping what costs so much an hour: never more than a tenth of it.
[[nodiscard]] double reserve_of(double budget, double usd_per_hour);

// A job with a budget is stopped early enough to save and stop within it.
[[nodiscard]] std::optional<job::LimitReached> judge_limits(const job::State& state, const Limits& limits,
                                                            const registry::Spent& spent, WallTime now);
// A deadline that is not hard has passed, and nobody was told.
[[nodiscard]] std::optional<job::DeadlinePassed> judge_late(const job::State& state, const Limits& limits,
                                                            WallTime now);

}  // namespace gridctl::control
