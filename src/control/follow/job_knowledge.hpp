// SPDX-License-Identifier: Apache-2.0
// The facts about a job that bear on where it runs best: the files to send, the cost of its checkpoints, the work that
// is left and its deadline.
#pragma once

#include <optional>

#include "registry/registry.hpp"
#include "sched/deadline.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

// Beyond this many bytes the links of hosts are worth reading for a decision.
inline constexpr double k_bytes_worth_links = 64e6;

// If it went on from its newest checkpoint.
[[nodiscard]] Result<sched::JobKnowledge> knowledge_of(registry::JobRecords& registry, const registry::Job& job,
                                                       const std::vector<sched::HostFacts>& hosts, WallTime now);
// Where it runs, and what is left there; nullopt when it does not run, or nobody knows how much is left.
[[nodiscard]] Result<std::optional<sched::CurrentRun>> present_of(registry::JobRecords& registry,
                                                                  const registry::Job& job,
                                                                  const std::vector<sched::HostFacts>& hosts,
                                                                  WallTime now);
// Adds what was measured of the hosts' links when a query or the job's bytes ask for it.
[[nodiscard]] Result<void> apply_links(registry::JobRecords& registry, const job::Spec& spec,
                                       const sched::JobKnowledge& known, std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::control
