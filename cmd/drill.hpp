// SPDX-License-Identifier: Apache-2.0
// What drills are kept and asked for; how they are judged is in job/drill.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "registry/registry.hpp"
#include "sched/host_facts.hpp"
#include "sched/place.hpp"

namespace gridctl::cmd {

// Changes with what decides how a job resumes: commands, image, checkpoint directory. The code itself is not in it.
[[nodiscard]] std::string resume_fingerprint(const job::Spec& spec);

// What to say of a job that may run long on hosts that are not its owner's own and was never drilled as it is now.
// Its newest drill has shown that it goes on elsewhere, and it is still the same.
[[nodiscard]] Result<bool> passed_drill(registry::Registry& registry, const job::Spec& spec);
[[nodiscard]] Result<std::optional<std::string>> drill_warning(registry::Registry& registry, const job::Spec& spec,
                                                               const sched::Decision& decision,
                                                               const std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::cmd
