// SPDX-License-Identifier: Apache-2.0
// The static agent binaries that this gridctl carries.
#pragma once

#include <string_view>
#include <vector>

namespace gridctl::control {

// The agent program for one machine type; the views live as long as the program.
struct AgentImage {
  std::string_view arch;        // as `uname -m` says it: "x86_64"
  std::string_view bytes;       // the static, stripped binary
  std::string_view sha256_hex;  // of the bytes
  std::string_view gzip = {};   // the bytes for a host that has gzip; empty = none
};

[[nodiscard]] const std::vector<AgentImage>& agent_images();

}  // namespace gridctl::control
