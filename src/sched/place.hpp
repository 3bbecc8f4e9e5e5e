// SPDX-License-Identifier: Apache-2.0
// Which host shall run the job? Pure: the same facts give the same answer, and every answer has its reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "sched/host_facts.hpp"

namespace gridctl::sched {

struct Placement {
  HostName host;
  EngineKind engine = EngineKind::process;
  std::vector<std::string> gpu_uuids;  // to lease; empty without GPUs
  double cpus = 0;                     // to lease
  std::uint64_t memory_bytes = 0;      // to lease; 0 = none reserved
  double price_per_hour = 0;           // USD, at placement
  std::string reason;                  // why this host, for people
  bool operator==(const Placement&) const = default;
};

// `code` is a stable word: pinned, drained, mismatch, class, region, label, price, query, engine, gpu, gpu_memory, gpu_count,
// cpus, memory, disk, nodes; and, curable by waiting: unreachable, quarantined, unhealthy, busy, avoided, query (about what changes by itself).
struct Rejection {
  HostName host;
  std::string code;
  std::string detail;      // for people
  bool temporary = false;  // waiting may cure it
  bool operator==(const Rejection&) const = default;
};

using Avoid = job::Avoided;  // a host and why this job stays away from it

struct Decision {
  std::optional<Placement> placement;
  std::vector<Placement> runners_up;  // hosts that would do too, best first
  std::vector<Rejection> rejections;  // by host name; one per host, the gravest reason
  bool could_ever_fit = false;        // placed, or some host was rejected for a temporary reason only
};

// Filters, then orders by preference among the GPU alternatives, price, and name.
// * What can never be cured by waiting is reported before what can, so that could_ever_fit is honest.
// * An avoided host (one that failed this job, or breaks jobs of all kinds) is taken only when no other host fits now
//   and none that answers is merely busy. Hosts that do not answer do not hold the job back: they may never return.
//   When all that fit are avoided, they are tried in the order of `avoided`: the one that failed it last comes last.
// * Engine: a job with an image needs docker or podman. On a host set to `auto` that is the working one that enforces
//   limits, docker before podman; a host set to one engine uses only that. A job without an image runs as a plain
//   process; a host whose owner chose a container engine takes no plain processes.
// * GPUs of one model are preferred; models of one vendor are mixed only when no single one suffices; vendors never.
[[nodiscard]] Decision place(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                             const std::vector<Avoid>& avoided);

// Lines for `job explain`: the choice, the others that fit, and the reason for each host that does not.
[[nodiscard]] std::vector<std::string> explain(const Decision& decision);
// One line for a pending job: "0 of 5 providers fit: 3 gpu_memory, 1 busy, 1 unreachable".
[[nodiscard]] std::string summary(const Decision& decision);

}  // namespace gridctl::sched
