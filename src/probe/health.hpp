// SPDX-License-Identifier: Apache-2.0
// Takes a host's health. Cheap parts (files, kernel log, disk) are always read; tools run only if they are asked for,
// each in its own process under a deadline, and never if one already hangs. The caller knows whose processes are on the
// GPUs.
#pragma once

#include <string>
#include <vector>

#include "os/clock.hpp"
#include "probe/health_log.hpp"
#include "probe/tools.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

// A GPU tool that has not answered for this long has hung: nvidia-smi on eight GPUs without persistence needs 5 s.
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

// Decides which hung tools may be tried again. A tool that hung is left alone for a minute, then twice as long each
// time, at most an hour; while a process of it is stuck in the kernel, it is never started.
struct HungNote {
  int times = 0;
  BootTime last;
};
[[nodiscard]] bool may_try(const HungNote& note, BootTime now);

}  // namespace gridctl::probe
