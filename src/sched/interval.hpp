// SPDX-License-Identifier: Apache-2.0
// Decides how often to take a checkpoint: too often wastes time on saving, too rarely loses work. Pure.
//
// Symbols: C time that one checkpoint stalls the job; M mean time between failures of the job, 1/M = sum of the rates
// of all hosts it needs; tau useful work between two checkpoints; R time from a failure until work continues.
//   Young 1974:               tau = sqrt(2 C M)                                                        for C << M
//   exact, from Daly's complete model T = M e^(R/M) (e^((tau+C)/M) - 1) Ts/tau by setting dT/dtau = 0:
//                             tau = M (1 + W0(-e^(-C/M - 1))),   efficiency = (1 - tau/M) e^(-R/M)
// Failures are treated as exponential. The exact form is used, or Young's where it is as good.
#pragma once

#include <string>

#include "base/time.hpp"

namespace gridctl::sched {

// All values are in seconds. REQUIRES: cost_s >= 0, mtbf_s > 0.
[[nodiscard]] double young_interval(double cost_s, double mtbf_s);
[[nodiscard]] double optimal_interval(double cost_s, double mtbf_s);
// Returns the share of the time that is useful work at the optimal interval, 0..1.
[[nodiscard]] double best_efficiency(double cost_s, double mtbf_s, double restart_s);

// Daly's complete model, for any interval: the time until `work_s` is done, with failures also during checkpoints and
// restarts, and with the last piece of work saved too. `unexposed_s`: the part of each restart in which no failure can
// strike the job (its host's silence); then T = (M + D) e^(R/M) (e^((tau+C)/M) - 1) Ts/tau, derived by the same renewal
// argument.
[[nodiscard]] double expected_time(double work_s, double interval_s, double cost_s, double mtbf_s, double restart_s,
                                   double unexposed_s = 0);

struct CheckpointCost {
  Duration stall{};    // C, measured: how long a checkpoint stops the work; 0 = not measured yet
  Duration upload{};   // until it is safe elsewhere: no interval is shorter, and that much more is lost on a failure
  Duration restart{};  // R: detection, a new host, start and restore
};
struct Interval {
  Duration every{};
  // Minimum time between two snapshots on the host: it follows from what can arrive in time, not from `every`, which
  // only advises the job. Skipping what the job saved anyway would lose work.
  Duration pause{};
  Duration soon{};        // while the job waits for a checkpoint to move; a tenth of the time at most goes into saving
  double efficiency = 0;  // expected, 0..1, at this interval
  std::string reason;     // "15m: a checkpoint stalls 5s and is safe after 20s, one failure in 1d expected…"
};
// A program that saves more often than advised loses less, as long as its checkpoints can be fetched in time: the host
// takes each complete one, but not before the previous one can have arrived here.
constexpr Duration k_pause_min = std::chrono::seconds{2};
constexpr Duration k_interval_min = std::chrono::seconds{10};  // shorter ones thrash the disk of the host
constexpr Duration k_interval_max = std::chrono::hours{4};     // longer ones lose more than anybody forgives
// Until a checkpoint has been measured, 5 s are assumed, and no interval is longer than 30 minutes.
constexpr Duration k_stall_assumed = std::chrono::seconds{5};
constexpr Duration k_interval_unmeasured_max = std::chrono::minutes{30};
// Returns the optimum within [max(upload, 10 s), 4 h]. Keeps `current` while the optimum is within 10 % of it
// (hysteresis). `rate_per_hour`: failures of all hosts together that the job needs. REQUIRES: > 0.
[[nodiscard]] Interval checkpoint_interval(const CheckpointCost& cost, double rate_per_hour, Duration current = {});

}  // namespace gridctl::sched
