// SPDX-License-Identifier: Apache-2.0
// How often to take a checkpoint: too often wastes time on saving, too seldom loses work. Pure.
//
// Symbols: C time that one checkpoint stalls the job; M mean time between failures of the job, 1/M = sum of the rates
// of all hosts it needs; tau useful work between two checkpoints; R time from a failure until work goes on.
//   Young 1974:               tau = sqrt(2 C M)                                                        for C << M
//   exact, from Daly's complete model T = M e^(R/M) (e^((tau+C)/M) - 1) Ts/tau by setting dT/dtau = 0:
//                             tau = M (1 + W0(-e^(-C/M - 1))),   efficiency = (1 - tau/M) e^(-R/M)
// Failures are taken as exponential. The exact form is used; Young's where it is as good.
#pragma once

#include <string>

#include "base/time.hpp"

namespace gridctl::sched {

// All in seconds. REQUIRES: cost_s >= 0, mtbf_s > 0.
[[nodiscard]] double young_interval(double cost_s, double mtbf_s);
[[nodiscard]] double optimal_interval(double cost_s, double mtbf_s);
// Share of the time that is useful work at the optimal interval, 0..1.
[[nodiscard]] double best_efficiency(double cost_s, double mtbf_s, double restart_s);

// Daly's complete model, for any interval: time until `work_s` is done, failures striking also during checkpoints and
// restarts, the last piece of work being saved too. `unexposed_s`: of each restart, the time before it in which nothing
// of the job can be struck (its host's silence); then T = (M + D) e^(R/M) (e^((tau+C)/M) - 1) Ts/tau, derived by the
// same renewal argument.
[[nodiscard]] double expected_time(double work_s, double interval_s, double cost_s, double mtbf_s, double restart_s,
                                   double unexposed_s = 0);

struct CheckpointCost {
  Duration stall{};    // C, measured: how long a checkpoint stops the work; 0 = not measured yet
  Duration upload{};   // until it is safe elsewhere: no interval is shorter, and that much more is lost on a failure
  Duration restart{};  // R: detection, a new host, start and restore
};
struct Interval {
  Duration every{};
  // The host takes no two snapshots closer together: by what can arrive in time, not by `every`. That advises the job,
  // and leaving out what it has saved anyway would lose work.
  Duration pause{};
  Duration soon{};        // while the job waits for a checkpoint to move; a tenth of the time at most goes into saving
  double efficiency = 0;  // expected, 0..1, at this interval
  std::string reason;     // "15m: a checkpoint stalls 5s and is safe after 20s, one failure in 1d expected…"
};
// A program that saves more often than it was told to loses less, as long as its checkpoints can be fetched in time:
// the host takes each that is whole, but not before the last one can have arrived here.
constexpr Duration k_pause_min = std::chrono::seconds{2};
constexpr Duration k_interval_min = std::chrono::seconds{10};  // shorter ones thrash the disk of the host
constexpr Duration k_interval_max = std::chrono::hours{4};     // longer ones lose more than anybody forgives
// Until a checkpoint was measured 5 s are assumed, and no interval is longer than 30 minutes.
constexpr Duration k_stall_assumed = std::chrono::seconds{5};
constexpr Duration k_interval_unmeasured_max = std::chrono::minutes{30};
// The optimum within [max(upload, 10 s), 4 h]. Keeps `current` while the optimum is within 10 % of it (hysteresis).
// `rate_per_hour`: of failures, of all hosts together that the job needs. REQUIRES: > 0.
[[nodiscard]] Interval checkpoint_interval(const CheckpointCost& cost, double rate_per_hour, Duration current = {});

}  // namespace gridctl::sched
