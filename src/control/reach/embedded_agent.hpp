// SPDX-License-Identifier: Apache-2.0
// The static agent binaries that this gridctl carries.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::control {

struct EmbeddedAgent {
  std::string_view arch;   // as `uname -m` says it: "x86_64"
  std::string_view bytes;  // the stripped binary
  std::string_view gzip;   // the same, compressed
  std::string sha256_hex;
};

// nullptr when this gridctl has no agent for such hosts. The result lives as long as the program.
[[nodiscard]] const EmbeddedAgent* embedded_agent(std::string_view uname_m);

}  // namespace gridctl::control
