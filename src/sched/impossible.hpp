// SPDX-License-Identifier: Apache-2.0
// Detects requests that no waiting can cure: contradictions, more than any hardware has, physical limits, and what the
// registered hosts cannot be together. Each with its arithmetic and what would work. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/coupling.hpp"
#include "sched/physics.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/topology.hpp"

namespace gridctl::sched {

// `code` is a stable word: contradiction, backend, gpu_memory, model_memory, duration, hosts, vendors, site, link.
struct Impossible {
  std::string code;
  std::string why;                   // one line with the numbers
  std::vector<std::string> instead;  // what would work, each with its number
  bool by_rates = false;             // that were measured: load lowers them, so measure again
  bool operator==(const Impossible&) const = default;
};

// Returns the first reason; nullopt only means that none was found. Draws no conclusions from missing measurements.
[[nodiscard]] std::optional<Impossible> impossible(const job::Spec& spec, const Coupling& coupling,
                                                   const std::vector<HostFacts>& hosts,
                                                   std::span<const PairLink> links);

// Judges the file alone; the other half judges the file on these hosts.
[[nodiscard]] std::optional<Impossible> impossible_alone(const job::Spec& spec, const Coupling& coupling);
[[nodiscard]] std::optional<Impossible> impossible_here(const job::Spec& spec, const Coupling& coupling,
                                                        const std::vector<HostFacts>& hosts,
                                                        std::span<const PairLink> links);

// Returns the best link that the slowest pair of any gang of the job can have; nullopt for one host, and while too
// little was measured to bound it.
[[nodiscard]] std::optional<Wire> best_gang_wire(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                                                 std::span<const PairLink> links);
// Returns the slowest link between any two of these; nullopt unless every pair was measured.
[[nodiscard]] std::optional<Wire> slowest_wire(const std::vector<const HostFacts*>& members,
                                               std::span<const PairLink> links);
// Checks physics on the hosts of a particular gang; the bounds above only say that some gang may be better.
[[nodiscard]] std::optional<Impossible> impossible_there(const job::Spec& spec,
                                                         const std::vector<const HostFacts*>& members,
                                                         std::span<const PairLink> links);
// Returns the declared exchange between the members.
[[nodiscard]] SynchronousJob synchronous_of(const job::Spec& spec);
// Returns the vendors that a request can mean, each once; empty if open.
[[nodiscard]] std::vector<Vendor> vendors_meant(const job::GpuRequest& request);

}  // namespace gridctl::sched
