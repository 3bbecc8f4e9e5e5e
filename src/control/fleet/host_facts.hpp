// SPDX-License-Identifier: Apache-2.0
// Converts providers into the scheduler's view. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "registry/host_records.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/topology.hpp"

namespace gridctl::control {

// Returns the registry's facts about the host; reachability as last judged by the controller, nothing taken.
[[nodiscard]] sched::HostFacts facts_of(const registry::Provider& provider);
// Sets how long a host with a known end will still be available.
void tell_time_left(sched::HostFacts& facts, WallTime now);
// Returns the measured figures of each host's links, as `provider show` lists them: inet_up, inet_down (Mbit/s) and rtt
// (ms), by name.
[[nodiscard]] Result<std::map<std::string, sched::Figures>> link_figures(registry::HostRecords& registry);
// Returns the measured links between hosts in the scheduler's form.
[[nodiscard]] Result<std::vector<sched::PairLink>> pair_links(registry::HostRecords& registry);
// Returns the view that a query has of the provider. The provider must outlive the result.
[[nodiscard]] sched::Subject subject_of(const registry::Provider& provider);

}  // namespace gridctl::control
