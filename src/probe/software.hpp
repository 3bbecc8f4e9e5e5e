// SPDX-License-Identifier: Apache-2.0
// Finds the libraries to which programs on the host are linked, tools that give GPUs to containers, and the kind of
// machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// Returns the tools to call for it, in this order.
[[nodiscard]] std::vector<ToolCall> software_calls();
// Returns "glibc 2.36" from getconf, or "musl 1.2.4" from ldd's text.
[[nodiscard]] std::string parse_libc(std::string_view getconf, std::string_view ldd);
// Parses "NVIDIA Container Toolkit CLI version 1.17.4" of nvidia-ctk.
[[nodiscard]] std::string parse_container_toolkit(std::string_view nvidia_ctk);
// Parses "kind: nvidia.com/gpu" of a CDI specification in YAML or JSON; empty if there is none.
[[nodiscard]] std::string parse_cdi_kind(std::string_view specification);

// Fills software; `answers` are those to software_calls(), `docker_info` is the output of `docker info`.
void add_software(const HostFiles& files, const std::vector<ToolAnswer>& answers, std::string_view docker_info,
                  Inventory& inventory);
// Fills product and virtualization.
void add_platform(const HostFiles& files, Inventory& inventory);

}  // namespace gridctl::probe
