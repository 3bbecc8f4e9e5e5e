// SPDX-License-Identifier: Apache-2.0
// Collects the facts about a job that decide where it runs best: the files to send, the cost of its checkpoints, the
// remaining work and its deadline.
#pragma once

#include <optional>

#include "registry/host_records.hpp"
#include "registry/job_records.hpp"
#include "sched/deadline.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

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
