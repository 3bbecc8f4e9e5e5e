// SPDX-License-Identifier: Apache-2.0
// Computes how well a job survives the loss of its host: its present fault tolerance, from 0 to 4, and whether a
// restored attempt has continued exactly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/reach/paths.hpp"
#include "registry/job_records.hpp"
#include "registry/job_records.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

struct ToleranceView {
  int level = 0;
  std::string text;  // "3 of 4: if it dies, the job continues on one of 2 other hosts from its last checkpoint"
};
// Returns nullopt for a job that has ended or was never placed.
[[nodiscard]] Result<std::optional<ToleranceView>> tolerance_view(registry::JobRecords& registry, const registry::Job& job);
// Returns the tolerance of a service with this many replicas that answer.
[[nodiscard]] std::optional<ToleranceView> tolerance_with(std::optional<ToleranceView> decided, int ready);

// Updates the line of a decision, because checkpoints may have been taken after it.
void put_newest_tolerance(const registry::Job& job, std::vector<std::string>& lines);

// Judges the newest restored attempt; nullopt if none was restored.
[[nodiscard]] Result<std::optional<ui::ExactnessTold>> exactness_of(const control::Paths& paths,
                                                                    registry::RunRecords& registry, const JobId& id);

}  // namespace gridctl::cmd
