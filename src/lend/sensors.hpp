// SPDX-License-Identifier: Apache-2.0
// Heat and mains power of this machine, as an ordinary user reads them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/files.hpp"

namespace gridctl::lend {

// Whether the machine runs on its battery. nullopt: it has none. Batteries of mice and keyboards are left out.
[[nodiscard]] std::optional<bool> on_battery(const os::Path& sys = "/sys");

struct Heat {
  int celsius = 0;
  std::string sensor;  // "GPU 0", "coretemp"
};
// The hottest of the GPUs and processors: by nvidia-smi, and by the kernel's sensors. nullopt: there is no sensor.
[[nodiscard]] std::optional<Heat> hottest(const os::Path& sys = "/sys");
// The text of `nvidia-smi --query-gpu=index,temperature.gpu --format=csv,noheader,nounits`. Pure.
[[nodiscard]] std::optional<Heat> parse_gpu_heat(std::string_view text);

}  // namespace gridctl::lend
