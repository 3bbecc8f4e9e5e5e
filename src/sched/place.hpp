// SPDX-License-Identifier: Apache-2.0
// Chooses the host for a job. Pure: the same facts give the same answer, and every answer has its reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "sched/cost.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::sched {

struct Placement {
  HostName host;
  EngineKind engine = EngineKind::process;
  std::vector<std::string> gpu_uuids;  // to lease; empty without GPUs
  double cpus = 0;                     // to lease
  std::uint64_t memory_bytes = 0;      // to lease; 0 = none reserved
  double price_per_hour = 0;           // USD, at placement
  std::string reason{};                // why this host, for people
  Estimate estimate{};                 // of the job's end there
  double failures_per_hour = 0;        // of the host and these GPUs
  double safely = 0;                   // seconds within which the job is almost surely done there (deadline.hpp);
                                       // 0: it has no deadline, or its work is not known
  bool late = false;                   // that is more than it has, or the host fails too often for it
  HostName refuge{};                   // it is slow or fails often, but while it may still leave for this one in time
  bool operator==(const Placement&) const = default;
};

// `code` is a stable word: pinned, drained, mismatch, class, region, sensitivity, label, price, query, engine,
// restore_from, clear_text, image_tag, gpu, gpu_memory, gpu_count, unverified, cpus, memory, disk, nodes; and, curable by
// waiting: unreachable, resting, twin, quarantined, unhealthy, unproven, unmeasured, busy, ends, avoided, query (about what
// changes on its own).
inline constexpr std::string_view k_busy = "busy";              // a code: another job holds what is wanted
inline constexpr std::string_view k_image_tag = "image_tag";    // a code: borrowed hosts get images by digest
inline constexpr std::string_view k_gpu_memory = "gpu_memory";  // a code: GPUs are too small, here or anywhere
struct Rejection {
  HostName host;
  std::string code;
  std::string detail;      // for people
  bool temporary = false;  // waiting may cure it
  bool operator==(const Rejection&) const = default;
};

// Describes what a lost host does to the job: 0 everything is lost, 1 the job restarts from its beginning, 2 its data
// survive, 3 it continues elsewhere from its last checkpoint automatically, 4 no effect (stateless services).
struct Tolerance {
  int level = 0;
  std::string why;  // for people
  bool operator==(const Tolerance&) const = default;
};

using Avoid = job::Avoided;  // a host and why this job stays away from it

inline constexpr std::size_t k_runners_up_max = 20;

struct Decision {
  std::optional<Placement> placement;
  std::vector<Placement> runners_up;   // hosts that would do too, best first; at most k_runners_up_max
  std::size_t fitting = 0;             // with all of those
  std::vector<Rejection> rejections;   // by host name; one per host, the gravest reason
  std::optional<Tolerance> tolerance;  // when placed
  bool could_ever_fit = false;         // placed, or some host was rejected for a temporary reason only
};

// Holds knowledge of a job beyond its file.
struct JobKnowledge {
  WorkEstimate task;
  bool work_known = false;                 // else `task.work` is assumed: what it costs is told per hour of work
  std::map<HostName, double> bytes_there;  // of the inputs, what a host has already
  std::map<HostName, double> speeds;       // of this job's work, where that is known; else by the hardware
  std::optional<double> time_left;         // seconds until its deadline; negative: that has passed
  bool drilled = false;                    // a drill has shown that it goes on elsewhere
  double failures_max = 0;                 // per hour; hosts that fail more often come last, as if too late. 0 = none
  [[nodiscard]] bool is_due() const { return time_left && work_known; }  // its deadline can be planned for
};
[[nodiscard]] JobKnowledge knowledge_of(const job::Spec& spec);
[[nodiscard]] JobKnowledge knowledge_of(const job::Spec& spec,
                                        WallTime now);  // of one that is submitted now: its deadline too

// Filters, then orders by preference among the GPU alternatives, by what the job asks to optimize (the expected cost to
// finish, otherwise the time, otherwise the failure rate), by price, and by name. Cost and time are expectations of the
// complete job (cost.hpp): an expensive host that is fast or never fails may well be the cheaper one.
// * Reasons that waiting cannot cure are reported before those that it can, so that could_ever_fit is honest.
// * An avoided host (one that failed this job, or breaks jobs of all kinds) is taken only if no other host fits now and
//   none that answers is merely busy. Hosts that do not answer do not delay the job: they may never return. If all
//   suitable hosts are avoided, they are tried in the order of `avoided`: the one that failed it last comes last.
// * A deadline comes before all preferences: hosts that are in time are ranked as usual, including those that have to
//   be left in time (deadline.hpp); if there is none, the one that finishes first.
// * Engine: a job with an image needs docker or podman. On a host set to `auto`, that is the working one that enforces
//   limits, docker before podman; a host set to one engine uses only that. A job without an image runs as a plain
//   process; a host whose owner chose a container engine takes no plain processes.
// * GPUs of one model are preferred; models of one vendor are mixed only if no single one suffices; vendors never.
[[nodiscard]] Decision place(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                             const std::vector<Avoid>& avoided, const JobKnowledge& known);
[[nodiscard]] Decision place(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                             const std::vector<Avoid>& avoided);  // known_of(spec)

// Returns lines for `job explain`: the choice, the other suitable hosts, and the reason for each host that is not.
[[nodiscard]] std::vector<std::string> explain(const Decision& decision);
// Returns a line of explain() as it reads once the job has a checkpoint; only the one about fault tolerance changes.
[[nodiscard]] std::string explained_with_checkpoint(std::string line);
void explain_rejections(const std::vector<Rejection>& rejections, std::vector<std::string>& lines);
[[nodiscard]] std::string counts_text(const std::vector<Rejection>& rejections);  // "3 gpu_memory, 1 busy"
// Returns one line for a pending job: "0 of 5 providers fit: 3 gpu_memory, 1 busy, 1 unreachable".
[[nodiscard]] std::string summary(const Decision& decision);

}  // namespace gridctl::sched
