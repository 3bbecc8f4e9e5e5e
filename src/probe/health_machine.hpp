// SPDX-License-Identifier: Apache-2.0
// Reads the machine's health from its own files: AMD and Intel GPUs, stuck tools, disk, memory, processors. It runs no
// tool. Everything is read beneath a root that tests replace.
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

// Reads AMD from amdgpu's and KFD's files; Intel from the fdinfo of processes, of which an ordinary user sees only its
// own.
[[nodiscard]] std::vector<wire::GpuHealth> amd_health(const HostFiles& files);
[[nodiscard]] std::vector<wire::GpuHealth> intel_health(const HostFiles& files);

// Parses "ue: 3\nce: 10\n".
struct RasCount {
  std::uint64_t uncorrected = 0, corrected = 0;
};
[[nodiscard]] std::optional<RasCount> parse_ras_count(std::string_view text);

// Holds one client of a GPU from /proc/PID/fdinfo/FD: drm-usage-stats.
struct DrmClient {
  std::string driver, pci;
  std::uint64_t memory_bytes = 0;
};
[[nodiscard]] std::optional<DrmClient> parse_fdinfo(std::string_view text);

// Returns the names of GPU tools (of any user) that have hung in the kernel for longer than `since`.
[[nodiscard]] std::vector<std::string> stuck_tools(const HostFiles& files, Duration since);

// Reads free space, state and errors of the disk that holds `home`; the caller does the write test.
void read_disk_health(const HostFiles& files, const os::Path& home, wire::DiskHealth& disk);
// Returns the complete disk of a partition: "sda3" -> "sda", "nvme0n1p2" -> "nvme0n1".
[[nodiscard]] std::string whole_disk(std::string_view partition);

// Reads available memory, pressure, load and processors.
void read_load(const HostFiles& files, wire::HealthReport& report);
[[nodiscard]] std::optional<double> parse_pressure(std::string_view text);  // avg60 of "some", percent
// Returns the ticks of 1/100 s since boot in which processors were not idle.
[[nodiscard]] std::optional<std::uint64_t> busy_ticks(const HostFiles& files);

}  // namespace gridctl::probe
