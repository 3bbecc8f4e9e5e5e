// SPDX-License-Identifier: Apache-2.0
// Chooses the hosts for a job that needs several at once: all or none, and the cheapest set to the end, by what the
// members cost together, at the pace of the slowest, failing when any of them fails. Pure.
//
// A tightly coupled gang stays inside one island (every pair of hosts known to be fast) or, if links were not measured,
// one declared site, and has identical GPUs. `links` are those that `topology` was derived from. Others may be spread.
// A gang of several members uses no borrowed host, unless the job's traffic may go in the clear. In each such pool,
// branch and bound finds the best set, which is exact: a host is left out only if enough others are at least as good in
// every respect, and a branch only if no completion of it can be better.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sched/coupling.hpp"
#include "sched/place.hpp"
#include "sched/topology.hpp"

namespace gridctl::sched {

// Describes how close the members must be.
enum class Near : std::uint8_t {
  island,  // and identical
  site,    // one site, identical
  any,     // anywhere, any models of one vendor or of several
};

struct GangWish {
  int members = 2;  // hosts, 1..1024
  Near near = Near::island;
  bool mixed_vendors = false;  // with Near::any
  bool joined = false;         // GPUs of a host by NVLink or its like
  // Rate of the links between hosts, unless they have InfiniBand or RoCE; nullopt: as in islands.
  std::optional<double> bits_per_second{};
  int members_min = 0;  // makes do with so many when there are no more; 0: all
  [[nodiscard]] int least() const { return members_min > 0 ? members_min : members; }
};

// Tight gangs need an island whose hosts' GPUs are joined, medium ones a site, others nothing. With `constraints:
// {interconnect: any}`, a tight gang only needs one site and identical GPUs.
[[nodiscard]] GangWish wish_of(const job::Spec& spec, const Coupling& coupling);

struct GangPlan {
  std::vector<Placement> members;  // by rank, which is the order of names
  std::string pool;                // "the island of ada and 3 others", "site hpc", "all hosts"
  std::string unmeasured;          // why the links are taken on trust, or taken though they are slow; or empty
  std::string gpus;                // of each member: "8x NVIDIA H100", or "mixed"
  HostGroup group;                 // all together
  Estimate estimate;
  bool exact = true;  // false: the search was cut off (k_gang_steps_max), there may be a better set
};
// Limits the branches searched in one pool. A gang runs for weeks on what was chosen in milliseconds: hence exact, with
// a limit.
inline constexpr std::uint64_t k_gang_steps_max = 200'000;

// A code of rejections, and the line of a job file by which the gang may use such a host.
inline constexpr std::string_view k_clear_text = "clear_text", k_clear_text_way_out = "constraints: {traffic: clear}";

struct GangDecision {
  std::optional<GangPlan> plan;
  std::vector<GangPlan> runners_up;      // the best of other pools and models
  std::vector<std::string> short_pools;  // "site hpc: 3 hosts fit, 4 are wanted"
  std::vector<Rejection> rejections;     // of hosts, by name
  std::size_t fitting = 0;               // hosts that could be a member now
  [[nodiscard]] bool nobody() const { return fitting == 0 && rejections.empty(); }  // no host is registered
  bool work_known = false;      // else the estimates are of a length that is only assumed
  bool could_ever_fit = false;  // it would with all that is only busy or away
  bool slow_links = false;      // rates that were measured decide: load lowers them, so measure again
};

// `spec.resources` is what each member needs. Avoided hosts are left out while the gang can do without them, if
// necessary with fewer members; of the rest, it gets as many as there are. A job that does not say how much its members
// exchange gets the fastest available links, with a note, if no hosts have those of an island.
[[nodiscard]] GangDecision place_gang(const job::Spec& spec, const GangWish& wish, const std::vector<HostFacts>& hosts,
                                      const Topology& topology, std::span<const PairLink> links,
                                      const std::vector<Avoid>& avoided, const JobKnowledge& known);
[[nodiscard]] std::string describe(const GangPlan& plan);
// Returns why there is no plan, in one line.
[[nodiscard]] std::string summary(const GangDecision& decision, const GangWish& wish);
// Builds the topology from declared sites and measured links.
[[nodiscard]] Topology topology_of(const std::vector<HostFacts>& hosts, std::span<const PairLink> links);
[[nodiscard]] std::vector<std::string> explain(const GangDecision& decision, const GangWish& wish);

}  // namespace gridctl::sched
