// SPDX-License-Identifier: Apache-2.0
// Stores the records of drills and answers questions about them; job/drill judges them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "registry/job_records.hpp"
#include "sched/place.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// Changes with everything that decides how a job resumes: commands, image, checkpoint directory. The code itself is not
// included.
[[nodiscard]] std::string resume_fingerprint(const job::Spec& spec);

// Returns true if the newest drill of the job has shown that it continues elsewhere, and the job is unchanged since.
[[nodiscard]] Result<bool> passed_drill(registry::JobRecords& registry, const job::Spec& spec);
[[nodiscard]] Result<std::optional<std::string>> drill_warning(registry::JobRecords& registry, const job::Spec& spec,
                                                               const sched::Decision& decision,
                                                               const std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::cmd
