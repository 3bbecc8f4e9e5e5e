// SPDX-License-Identifier: Apache-2.0
// Shows whether a job will meet its deadline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "registry/job_records.hpp"
#include "sched/place.hpp"
#include "sched/query/host_facts.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

struct DeadlineView {
  ui::DeadlineTold told;
  std::string text;  // for people
};
// Returns nullopt if it has none.
[[nodiscard]] Result<std::optional<DeadlineView>> deadline_view(registry::JobRecords& registry, const registry::Job& job,
                                                                const std::vector<sched::HostFacts>& hosts,
                                                                WallTime now);
// Returns the outlook of a job that would be submitted now.
[[nodiscard]] std::optional<ui::DeadlineTold> deadline_told(const job::Spec& spec, const sched::Decision& decision,
                                                            WallTime now);
// Fails with usage if the deadline has already passed.
[[nodiscard]] Result<void> check_deadline(const job::Spec& spec, WallTime now);
// Returns why the deadline may be missed, or cannot be planned for; empty if all is well.
[[nodiscard]] std::string deadline_doubt(const job::Spec& spec, const sched::Decision& decision, WallTime now);

}  // namespace gridctl::cmd
