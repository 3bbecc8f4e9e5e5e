// SPDX-License-Identifier: Apache-2.0
// Container engines: what to ask them, and what their answers mean. Pure.
#pragma once

#include <array>

#include "base/inventory.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

[[nodiscard]] ToolCall docker_call();
[[nodiscard]] ToolCall podman_call();
// `user` is named in the advice.
[[nodiscard]] Engine read_docker(const ToolAnswer& answer, std::string_view user);
[[nodiscard]] Engine read_podman(const ToolAnswer& answer, std::string_view user);
// The plain process: always usable. The agent holds its limits where it may make control groups.
[[nodiscard]] Engine process_engine(bool limits_enforced);

}  // namespace gridctl::probe
