// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "agent/engine.hpp"

namespace gridctl::agent {

// Runs jobs without an engine: init is a child of the supervisor. Limits apply if the host lets us make control groups.
[[nodiscard]] std::unique_ptr<Engine> make_process_engine();

}  // namespace gridctl::agent
