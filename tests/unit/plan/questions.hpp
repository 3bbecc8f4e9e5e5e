// SPDX-License-Identifier: Apache-2.0
// A question about a small model on H100s, which tests change where they must.
#pragma once

#include "plan/search.hpp"

namespace gridctl::plan::testing {

inline Question question(int each, int nodes) {
  Question out;
  out.training.model = *family("llama-3.2-1b");
  out.training.sequence = 2048;
  out.training.batch = 16;
  out.training.framework = Framework::fsdp2;
  const sched::GpuModel* const row = *gpu_named("H100 SXM5 80GB");
  out.cluster = cluster_of(device_of(*row), row, each);
  out.nodes = nodes;
  return out;
}

}  // namespace gridctl::plan::testing
