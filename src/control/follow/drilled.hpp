// SPDX-License-Identifier: Apache-2.0
// Tells whether a drill has shown that a job continues on another host.
#pragma once

#include <string>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "registry/job_records.hpp"

namespace gridctl::control {

// Changes with everything that decides how a job resumes: commands, image, checkpoint directory. The code itself is not
// included.
[[nodiscard]] std::string resume_fingerprint(const job::Spec& spec);

// Returns true if the newest drill of the job has shown that it continues elsewhere, and the job is unchanged since.
[[nodiscard]] Result<bool> passed_drill(registry::JobRecords& registry, const job::Spec& spec);

}  // namespace gridctl::control
