// SPDX-License-Identifier: Apache-2.0
// Judges an inventory: whether jobs may run there, and which command fixes each problem. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/inventory.hpp"
#include "base/time.hpp"

namespace gridctl::probe {

struct Finding {
  std::string point;  // stable name: "home", "disk", "engine", "limits", "isolation", "subuid", "clock", "shm", "gpu"
  bool ok = true;
  std::string detail;    // one line for people; foreign text
  std::string fix;       // the command to type on that host, empty when ok
  bool required = true;  // when false, jobs run in spite of it
  bool operator==(const Finding&) const = default;
};

// `wanted`: the engine that the user asked for; nullopt = any (docker, then podman, then process). `now`: the judging
// machine's wall clock, to compare the host's with; nullopt = only an absurd clock is found.
[[nodiscard]] std::vector<Finding> preflight(const Inventory& inventory,
                                             std::optional<EngineKind> wanted = std::nullopt,
                                             std::optional<WallTime> now = std::nullopt);

// Return whether every required check passed, and the reason in one line why no job can run there with any engine;
// empty if no such reason is known. Cheap if everything is well.
[[nodiscard]] std::string unfit_reason(const Inventory& inventory);
[[nodiscard]] bool passed(const std::vector<Finding>& findings);

// Returns the engine that jobs will use: the wanted one, or the first usable of docker, podman, process; nullptr =
// none.
[[nodiscard]] const Engine* choose_engine(const Inventory& inventory, std::optional<EngineKind> wanted);

}  // namespace gridctl::probe
