// SPDX-License-Identifier: Apache-2.0
// Parses the GPU notation of dstack and SkyPilot.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "job/spec.hpp"

namespace gridctl::sched {

// Notation: vendor:name,name:memory range:count range, each part optional but in this order: "H100:8",
// "A100:40GB..80GB:2..8", "24GB..", "nvidia", "2". A single size is exact ("A100:80GB"); counts are 1..256. Errors are
// Code::usage without a place, suitable after "key 'x': " or "--gpu: ".
[[nodiscard]] Result<job::GpuRequest> parse_gpu_spec(std::string_view text);

}  // namespace gridctl::sched
