// SPDX-License-Identifier: Apache-2.0
// A container engine of this machine with a small image.
#pragma once

#include <map>
#include <string>

#include "base/inventory.hpp"

namespace gridctl::testing {

struct EngineHere {
  std::map<std::string, std::string> environment;  // of whoever runs it
  std::string problem;                             // why this machine has none; empty: it works
};
// With the busybox image gridctl-test:1, made once per run.
[[nodiscard]] const EngineHere& engine_here(EngineKind kind);

}  // namespace gridctl::testing
