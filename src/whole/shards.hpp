// SPDX-License-Identifier: Apache-2.0
// Handles sets of files that are numbered within themselves: model-00001-of-00004.safetensors.
#pragma once

#include <optional>
#include <span>

#include "whole/layout_tools.hpp"

namespace gridctl::whole {

// Returns the first incomplete set. It may count from 0 or from 1. Temporary files do not count.
[[nodiscard]] std::optional<Trouble> missing_shard(std::span<const FileFact> files);

}  // namespace gridctl::whole
