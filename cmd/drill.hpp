// SPDX-License-Identifier: Apache-2.0
// Warns before a job starts that no drill has shown whether it resumes; job/drill judges drills.
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

[[nodiscard]] Result<std::optional<std::string>> drill_warning(registry::JobRecords& registry, const job::Spec& spec,
                                                               const sched::Decision& decision,
                                                               const std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::cmd
