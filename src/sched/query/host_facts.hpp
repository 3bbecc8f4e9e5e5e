// SPDX-License-Identifier: Apache-2.0
// Holds the scheduler's view of one host: its owner's statements, its inventory, and its free capacity now.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/shared.hpp"
#include "base/time.hpp"
#include "sched/query/query_fields.hpp"

namespace gridctl::sched {

struct HostFacts {
  HostName name;
  Shared<Inventory> inventory;  // as last seen, also when the host does not answer now
  std::string region, site;
  std::string region_doubt;   // why the declared region cannot be true, as measured, or empty
  std::string host_class;     // datacenter, cloud, market, home
  double price_per_hour = 0;  // USD for the whole host
  std::map<std::string, std::string> labels;
  std::optional<EngineKind> engine;  // the one its owner chose; nullopt = auto
  bool drained = false;
  bool reachable = true;
  std::string mismatch;  // why its GPUs are not what it declares, as measured; empty while nothing is known
  std::set<std::string> unverified_gpus;  // UUIDs of those that a benchmark could compare with no known model
  std::vector<std::string> busy_gpus;                 // UUIDs that someone holds (any user, any controller)
  std::optional<double> cpus_free;                    // nullopt = as many as the inventory has
  std::optional<std::uint64_t> memory_free;           // bytes; nullopt = as much as the inventory has
  std::string quarantined;                            // why it gets nothing new, or empty
  std::map<std::string, std::string> unhealthy_gpus;  // UUID -> why it gets nothing new
  bool on_probation = false;                          // it was quarantined lately: others are preferred
  Figures figures;                                    // what was measured of it
  std::string resting;  // why this very job leaves it alone for a moment, and until when, or empty
  std::string apart;                                  // why this very job must not go there now, or empty
  std::string unmeasured;  // why no job gets GPUs of it yet, or empty
  std::string unproven;    // why this very job, which has not shown that it saves, stays away from it, or empty
  std::string not_plain;  // why this very job must not run there as a plain process, or empty
  std::map<std::string, std::string> image_problems{};  // of this very job: image by tag -> why its digest is not known
  std::optional<WallTime> until;  // it ends then, in order; nullopt: nobody has said so
  std::optional<Duration> left;   // from now until then
  std::string shunned;  // why every job stays away from it while there are others, or empty
};

// Converts CPUs to these units: sums of tenths must be exact.
[[nodiscard]] std::int64_t thousandths(double cpus);

// Subtracts the share that a member of an attempt holds there.
void take_away(HostFacts& host, const std::vector<std::string>& gpu_uuids, double cpus, std::uint64_t memory_bytes);

// Returns the view that a query has. The facts must outlive the result.
[[nodiscard]] Subject subject_of(const HostFacts& host);

}  // namespace gridctl::sched
