// SPDX-License-Identifier: Apache-2.0
// Whether a job that was restored is the run that it would have been, for those who show it.
#pragma once

#include <optional>
#include <string>

#include "control/follow/exactness.hpp"
#include "control/reach/paths.hpp"
#include "registry/registry.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

// Judges the newest restored attempt; nullopt when none was restored.
[[nodiscard]] Result<std::optional<ui::ExactnessTold>> exactness_of(const control::Paths& paths,
                                                                    registry::Registry& registry, const JobId& id);
}  // namespace gridctl::cmd
