// SPDX-License-Identifier: Apache-2.0
// Computes how far a job has come, as far as possible: from its declared length and the time it has computed, or from
// its metric "progress". Pure.
#pragma once

#include <optional>
#include <vector>

#include "registry/records.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::control {

inline constexpr const char* k_progress_metric = "progress";  // the share of its work that is done, 0..1

// Returns the speed with the job's share of the host: a job with variants that got no GPUs works on cores.
[[nodiscard]] double speed_with(const job::Spec& spec, const sched::HostFacts& host,
                                const std::vector<const Gpu*>& gpus, double cpus);

// All values are seconds of computing at speed 1.
struct Progress {
  std::optional<double> total;  // nobody knows without it
  double saved = 0;             // in the newest checkpoint
  double unsaved = 0;           // since then, where it runs
};
// For ended attempts, all time that was not lost counts as saved. `checkpoints`: the kept ones.
[[nodiscard]] Progress progress_of(const registry::Job& job, const std::vector<registry::AttemptRecord>& attempts,
                                   const std::vector<registry::Checkpoint>& checkpoints,
                                   const std::vector<sched::HostFacts>& hosts, WallTime now);

}  // namespace gridctl::control
