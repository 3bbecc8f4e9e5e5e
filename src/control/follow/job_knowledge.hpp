// SPDX-License-Identifier: Apache-2.0
// Collects the facts about a job that decide where it runs best: the files to send, the cost of its checkpoints, the
// remaining work and its deadline.
#pragma once

#include <optional>
#include <vector>

#include "registry/host_records.hpp"
#include "registry/job_records.hpp"
#include "registry/records.hpp"
#include "sched/deadline.hpp"
#include "sched/place.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::control {

// Computes how far a job has come, as far as possible: from its declared length and the time it has computed, or from
// its metric "progress". Pure.
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

// Above this many bytes, reading the links of hosts is worthwhile for a decision.
inline constexpr double k_bytes_worth_links = 64e6;

// Assumes that the job continues from its newest checkpoint.
[[nodiscard]] Result<sched::JobKnowledge> knowledge_of(registry::JobRecords& registry, const registry::Job& job,
                                                       const std::vector<sched::HostFacts>& hosts, WallTime now);
// Returns where the job runs and what is left there; nullopt if it does not run, or if the remaining work is unknown.
[[nodiscard]] Result<std::optional<sched::CurrentRun>> present_of(registry::JobRecords& registry,
                                                                  const registry::Job& job,
                                                                  const std::vector<sched::HostFacts>& hosts,
                                                                  WallTime now);
// Adds the measured links of the hosts if a query or the job's bytes need them.
[[nodiscard]] Result<void> apply_links(registry::HostRecords& registry, const job::Spec& spec,
                                       const sched::JobKnowledge& known, std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::control
