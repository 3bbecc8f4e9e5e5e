// SPDX-License-Identifier: Apache-2.0
// Shows whether a restored job continued exactly.
#pragma once

#include <optional>

#include "control/follow/exactness.hpp"
#include "control/reach/paths.hpp"
#include "registry/job_records.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

// Judges the newest restored attempt; nullopt if none was restored.
[[nodiscard]] Result<std::optional<ui::ExactnessTold>> exactness_of(const control::Paths& paths,
                                                                    registry::RunRecords& registry, const JobId& id);
}  // namespace gridctl::cmd
