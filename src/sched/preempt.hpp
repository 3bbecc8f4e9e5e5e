// SPDX-License-Identifier: Apache-2.0
// Chooses the running jobs that make room for one of higher priority. Pure.
//
// As few as possible, of the lowest priority, and among those the ones that started last. No job is stopped for it: jobs
// leave when their next checkpoint is safe, and workers of bags when their tasks have ended. So a job that does not save
// is never asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

// Represents a running job whose resources might make room.
struct Holder {
  JobId job;
  int priority = 0;
  bool leaving = false;       // it was asked to already: let it be the same one
  std::int64_t began_at = 0;  // of its attempt, any unit
  HostName host;
  std::vector<std::string> gpu_uuids;
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
};

struct Preemption {
  std::vector<JobId> jobs;  // to leave, never empty
  Placement placement;      // of the one that waits, when they have left
};

// `hosts`: as they would be if all holders had left. nullopt: it would not help, or the job fits without.
[[nodiscard]] std::optional<Preemption> preempt(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                                                std::vector<Holder> holders, const std::vector<Avoid>& avoided,
                                                const JobKnowledge& known);

}  // namespace gridctl::sched
