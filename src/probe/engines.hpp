// SPDX-License-Identifier: Apache-2.0
// Defines the questions to container engines, and interprets their answers. Pure.
#pragma once

#include "base/inventory.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

[[nodiscard]] ToolCall docker_call();
[[nodiscard]] ToolCall podman_call();
// Reads Docker's answers; the advice names `user`.
[[nodiscard]] Engine read_docker(const ToolAnswer& answer, std::string_view user);
[[nodiscard]] Engine read_podman(const ToolAnswer& answer, std::string_view user);
// Returns the plain process, which is always usable. The agent enforces its limits if it may make control groups.
[[nodiscard]] Engine process_engine(bool limits_enforced);

}  // namespace gridctl::probe
