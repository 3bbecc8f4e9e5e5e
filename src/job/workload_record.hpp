// SPDX-License-Identifier: Apache-2.0
// Reads and writes the stored form of a Workload, for spec.cpp.
#pragma once

#include "base/record.hpp"
#include "job/workload.hpp"

namespace gridctl::job {

GRIDCTL_FIELDS_ELSEWHERE(Workload)

}  // namespace gridctl::job
