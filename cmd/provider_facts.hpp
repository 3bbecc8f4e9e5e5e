// SPDX-License-Identifier: Apache-2.0
// Provides the scheduler's view of providers, for commands that decide or explain without a daemon.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "registry/registry.hpp"
#include "sched/gang.hpp"
#include "sched/place.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// Returns the facts of all providers; resources that jobs of this state directory hold are busy.
[[nodiscard]] Result<std::vector<sched::HostFacts>> all_host_facts(registry::Registry& registry, WallTime now);
// Returns the facts of the members of a job's attempt alone: reading a thousand inventories takes longer than the rest
// of a command.
[[nodiscard]] Result<std::vector<sched::HostFacts>> member_facts(registry::HostRecords& registry, const registry::Job& job);
// Returns no_provider_fits with one line of context for each host and its reason.
[[nodiscard]] Error nothing_fits(const std::string& job_name, const sched::Decision& decision);
[[nodiscard]] Error nothing_fits(const job::Spec& spec, const sched::GangDecision& decision);

}  // namespace gridctl::cmd
