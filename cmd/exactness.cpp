// SPDX-License-Identifier: Apache-2.0
#include "cmd/exactness.hpp"

#include "control/follow/job_files.hpp"

namespace gridctl::cmd {

Result<std::optional<ui::ExactnessTold>> exactness_of(const control::Paths& paths, registry::RunRecords& registry,
                                                      const JobId& id) {
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(id));
  control::JobFiles files(paths);
  TRY_ASSIGN(const std::optional<control::ExactnessFound> found, control::find_exactness(files, id, attempts));
  if (!found) return std::optional<ui::ExactnessTold>{};
  const Result<registry::Checkpoint> from = registry.checkpoint(id, found->from);  // it may be removed since
  return std::optional{ui::ExactnessTold{
      found->attempt, found->verdict, job::exactness_text(found->verdict, from ? from->how : "")}};
}

}  // namespace gridctl::cmd
