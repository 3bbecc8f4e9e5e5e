// SPDX-License-Identifier: Apache-2.0
// Reads reports in the kernel log on GPUs, memory, disks and hangs. Pure; the log is foreign text, and only known lines
// are used.
//
// Sources of the forms: NVIDIA "XID Errors" (NVRM lines); Linux drivers/gpu/drm/amd/amdgpu/amdgpu_{device,ras}.c,
// drivers/gpu/drm/i915/i915_gpu_error.c, drivers/gpu/drm/xe/xe_device.c, drivers/pci/pcie/aer.c, kernel/hung_task.c,
// mm/oom_kill.c, fs/ext4/super.c, block/blk-core.c.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "wire/health.hpp"

namespace gridctl::probe {

// Names the source format of a log.
enum class LogForm : std::uint8_t {
  kmsg,     // /dev/kmsg: "6,339,5140900,-;text", continued by lines that begin with a blank
  journal,  // journalctl -k -o short-monotonic: "[    5.140900] host kernel: text"
};
struct LogLine {
  std::uint64_t stamp_us = 0;  // since boot, by the log's own clock
  std::string_view text;
};

// Returns the lines in order, without those of another form.
[[nodiscard]] std::vector<LogLine> split_log(std::string_view log, LogForm form);

// Interprets one line; an event with an empty kind means none. Age and stamp are left at zero.
[[nodiscard]] wire::KernelEvent read_log_line(std::string_view text);

// Returns the newest events, oldest first, with equal ones (kind, code, device) counted together. `now_us` by the log's
// clock.
[[nodiscard]] std::vector<wire::KernelEvent> read_kernel_log(std::string_view log, LogForm form, std::uint64_t now_us);

}  // namespace gridctl::probe
