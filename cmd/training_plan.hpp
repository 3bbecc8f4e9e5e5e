// SPDX-License-Identifier: Apache-2.0
// Plans a job that names its model: shape of the gang, memory and step time for the placement.
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

// Fills in what the user left open: accelerators and num_nodes where no GPU is asked for, model_memory, step, and what
// is expected of the run. A line for people, or nothing when the job names no model or no known GPU may run it.
// `links`: what was measured between hosts takes the place of the catalogue's network. `runs`: finished ones, which
// correct the figures.
// Refused (no_provider_fits) when no parallelism fits the hosts that it may have.
[[nodiscard]] Result<std::optional<std::string>> plan_training(job::Spec& spec,
                                                               const std::vector<sched::HostFacts>& hosts,
                                                               const std::vector<registry::HostLink>& links,
                                                               const std::vector<plan::FinishedRun>& runs);

}  // namespace gridctl::cmd
