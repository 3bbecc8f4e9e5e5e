// SPDX-License-Identifier: Apache-2.0
// Plans a job apart from its host, for every command that plans or explains: class, backend, strategy, physics.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"
#include "sched/gang.hpp"
#include "sched/impossible.hpp"
#include "sched/outline.hpp"
#include "sched/place.hpp"

namespace gridctl::cmd {

// Returns where the decision puts it, and where it runs. `hosts` must outlive the result.
[[nodiscard]] std::vector<sched::Chosen> chosen_of(const sched::Decision& decision,
                                                   const std::vector<sched::HostFacts>& hosts);
[[nodiscard]] std::vector<sched::Chosen> chosen_of(const sched::GangDecision& decision,
                                                   const std::vector<sched::HostFacts>& hosts);
[[nodiscard]] std::vector<sched::Chosen> chosen_of(const registry::Job& job,
                                                   const std::vector<sched::HostFacts>& hosts);

// Returns a list of {"provider","engine","gpus","price"}.
[[nodiscard]] std::string members_json(std::span<const sched::Placement> members);
// Returns {"hours","cost","work_hours",…}: expected until the end; null if the job will never end.
[[nodiscard]] std::string estimate_json(const sched::Estimate& estimate);
// Returns {"class",…} for the key "plan".
[[nodiscard]] std::string outline_json(const sched::Outline& outline);

// Returns no_provider_fits with the arithmetic, and in its context what would work.
[[nodiscard]] Error impossible_error(const std::string& job_name, const sched::Impossible& no);

}  // namespace gridctl::cmd
