// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "agent/engine.hpp"

namespace gridctl::agent {

// Runs docker or podman through their command lines.
[[nodiscard]] std::unique_ptr<Engine> make_container_engine(EngineKind kind);

}  // namespace gridctl::agent
