// SPDX-License-Identifier: Apache-2.0
// The machine's health as its own files tell it: AMD and Intel GPUs, stuck tools, disk, memory, processors. No tool is
// run. Everything is read beneath a root that tests replace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "probe/host_files.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

// AMD by amdgpu's and KFD's files; Intel by the fdinfo of processes, of which an ordinary user sees only its own.
[[nodiscard]] std::vector<wire::GpuHealth> amd_health(const HostFiles& files);
[[nodiscard]] std::vector<wire::GpuHealth> intel_health(const HostFiles& files);

// "ue: 3\nce: 10\n"
struct RasCount {
  std::uint64_t uncorrected = 0, corrected = 0;
};
[[nodiscard]] std::optional<RasCount> parse_ras_count(std::string_view text);

// One client of a GPU as /proc/PID/fdinfo/FD tells: drm-usage-stats.
struct DrmClient {
  std::string driver, pci;
  std::uint64_t memory_bytes = 0;
};
[[nodiscard]] std::optional<DrmClient> parse_fdinfo(std::string_view text);

// Names of GPU tools (of anybody's) that have hung in the kernel for longer than `since`.
[[nodiscard]] std::vector<std::string> stuck_tools(const HostFiles& files, Duration since);

// Free space, state and errors of what holds `home`; without the write test, which is the caller's.
void read_disk_health(const HostFiles& files, const os::Path& home, wire::DiskHealth& disk);
// Whole disk of a partition: "sda3" -> "sda", "nvme0n1p2" -> "nvme0n1".
[[nodiscard]] std::string whole_disk(std::string_view partition);
// The source of the mount that holds `path`: "/dev/sda3".
[[nodiscard]] std::string mount_source(std::string_view mountinfo, const os::Path& path);

// Available memory, pressure, load and processors.
void read_load(const HostFiles& files, wire::HealthReport& report);
[[nodiscard]] std::optional<double> parse_pressure(std::string_view text);  // avg60 of "some", percent
// Ticks of 1/100 s that processors were not idle, since boot.
[[nodiscard]] std::optional<std::uint64_t> busy_ticks(const HostFiles& files);

}  // namespace gridctl::probe
