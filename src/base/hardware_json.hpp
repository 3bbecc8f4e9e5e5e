// SPDX-License-Identifier: Apache-2.0
// Converts the parts of a host to JSON, for inventory.cpp.
#pragma once

#include "base/hardware.hpp"
#include "base/record.hpp"

namespace gridctl {

inline constexpr std::size_t k_gaps_max = 64;  // there are fewer attributes

GRIDCTL_FIELDS_ELSEWHERE(Gap)
GRIDCTL_FIELDS_ELSEWHERE(Gpu)
GRIDCTL_FIELDS_ELSEWHERE(GpuLink)
GRIDCTL_FIELDS_ELSEWHERE(Nic)
GRIDCTL_FIELDS_ELSEWHERE(Disk)
GRIDCTL_FIELDS_ELSEWHERE(CpuLayout)

}  // namespace gridctl
