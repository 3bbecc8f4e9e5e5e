// SPDX-License-Identifier: Apache-2.0
// Providers as the scheduler sees them. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/state.hpp"
#include "registry/registry.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/topology.hpp"

namespace gridctl::control {

// Returns the registry's facts about the host; reachable as the controller last judged, nothing taken.
[[nodiscard]] sched::HostFacts facts_of(const registry::Provider& provider);
// How long a host that ends is still there.
void tell_time_left(sched::HostFacts& facts, WallTime now);
// Returns the measured figures of each host's links, as `provider show` lists them: inet_up, inet_down (Mbit/s) and rtt
// (ms), by name.
[[nodiscard]] Result<std::map<std::string, sched::Figures>> link_figures(registry::JobRecords& registry);
// The measured links between hosts, as the scheduler takes them.
[[nodiscard]] Result<std::vector<sched::PairLink>> pair_links(registry::JobRecords& registry);
// As a query sees it. The provider must outlive the result.
[[nodiscard]] sched::Subject subject_of(const registry::Provider& provider);
// Subtracts the resources that one member of a running attempt holds there.
void take_away(sched::HostFacts& host, const job::Member& member);

}  // namespace gridctl::control
