// SPDX-License-Identifier: Apache-2.0
// Facts about a job besides its placement: its class, the library its parts communicate with, and the physical limits
// of its links. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sched/backend.hpp"
#include "sched/coupling.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/topology.hpp"

namespace gridctl::sched {

struct Outline {
  Coupling coupling;
  BackendChoice backend;           // automatic while it depends on the GPUs that the job gets
  std::vector<std::string> notes;  // with numbers: idle shares, what is not known, what no link can do
  std::string list_price;  // beside that of a hyperscaler; empty while the GPUs are open, or nobody lists the like
  bool operator==(const Outline&) const = default;
};

// `chosen`: the hosts it runs on or would run on, with the GPUs that it takes there; empty while that is open. `hosts`:
// all.
struct Chosen {
  const HostFacts* host = nullptr;  // borrowed
  std::vector<std::string> gpu_uuids;
};
[[nodiscard]] Outline outline(const job::Spec& spec, const std::vector<Chosen>& chosen,
                              const std::vector<HostFacts>& hosts, std::span<const PairLink> links);

[[nodiscard]] std::vector<std::string> explain(const Outline& outline);

}  // namespace gridctl::sched
