// SPDX-License-Identifier: Apache-2.0
// Computes the exit code after waiting for a job.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// Returns why the job is in its state, for people.
[[nodiscard]] std::string why_of(const registry::Job& job);

// Returns 0 for a job that succeeded, and for one that was watched until the reader of the output had gone; otherwise
// job_failed (1), no_provider_fits (4) or cancelled (9) with the reason.
[[nodiscard]] Result<int> outcome_of(const registry::Job& job);

// Returns {"job_id","name","state","reason","exit_code"} for a job that was waited for.
[[nodiscard]] std::string outcome_json(const registry::Job& job);

// Returns how `job resume` raises a limit that has stopped a job: "--budget USD". `limit`: its machine word.
[[nodiscard]] std::string resume_with_more(const JobId& id, std::string_view limit);

}  // namespace gridctl::cmd
