// SPDX-License-Identifier: Apache-2.0
// Plans a job that names its model: the shape of the gang, and the memory and step time for the placement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "plan/outcome.hpp"
#include "registry/hosts.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// Fills in the values that the user left open: accelerators and num_nodes if no GPU is asked for, model_memory, step,
// and the expectations of the run. Returns a line for people, or nothing if the job names no model or no known GPU may
// run it. `links`: measurements between hosts, which replace the catalogue's network. `runs`: finished runs, which
// correct the figures. Refused with no_provider_fits if no parallelism fits the hosts that the job may use.
[[nodiscard]] Result<std::optional<std::string>> plan_training(job::Spec& spec,
                                                               const std::vector<sched::HostFacts>& hosts,
                                                               const std::vector<registry::HostLink>& links,
                                                               const std::vector<plan::FinishedRun>& runs);

}  // namespace gridctl::cmd
