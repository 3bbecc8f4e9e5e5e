// SPDX-License-Identifier: Apache-2.0
// Takes a host's health. Cheap parts (files, kernel log, disk) always; tools only where asked for, each in a process of
// its own under a deadline, and none that hangs already. Whose processes on GPUs are is the caller's knowledge.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "os/clock.hpp"
#include "probe/health_log.hpp"
#include "probe/tools.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

// A GPU tool that has answered nothing for so long has hung: nvidia-smi on eight GPUs without persistence needs 5 s.
inline constexpr Duration k_health_tool_deadline = std::chrono::seconds{10};

struct KernelLogText {
  std::string text;
  LogForm form = LogForm::kmsg;
  std::uint64_t now_us = 0;  // of the log's clock
  std::string problem;       // why it could not be read
};

struct HealthOptions {
  os::Path root = "/";
  Toolbox toolbox{std::nullopt, k_health_tool_deadline};
  os::Path home;
  bool gpu_tools = false, engines = false, packages = false;
  std::vector<std::string> skip_tools;  // they hung, and it is not time to try them again
  KernelLogText log;
};

[[nodiscard]] wire::HealthReport take_health(os::Clock& clock, const HealthOptions& options);

// Which hung tools may be tried again. A tool that hung is left alone for a minute, then twice as long each time, at
// most an hour; while a process of it is stuck in the kernel it is never started.
struct HungNote {
  int times = 0;
  BootTime last;
};
[[nodiscard]] bool may_try(const HungNote& note, BootTime now);

}  // namespace gridctl::probe
