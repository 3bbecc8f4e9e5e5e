// SPDX-License-Identifier: Apache-2.0
// Describes the state of a host: operation "health" of gridctl-agent(7). Everything in a report is the host's own
// statement; texts are foreign. Lists and texts are bounded when they are made and again when they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::size_t k_health_gpus_max = 256;
inline constexpr std::size_t k_health_processes_max = 32;  // of one GPU; more tell nothing new
inline constexpr std::size_t k_health_events_max = 64;     // the newest of the kernel log
inline constexpr std::size_t k_health_packages_max = 64;
inline constexpr std::size_t k_health_text_max = 240;  // bytes of one line

// States whose a process on a GPU is.
enum class ProcessOwner : std::uint8_t {
  foreign,   // nobody's that gridctl knows
  leased,    // of an attempt that holds a lease on that GPU
  leftover,  // of an attempt of gridctl's that holds none: it should be gone
};
[[nodiscard]] std::string_view owner_name(ProcessOwner owner);  // "foreign"

struct GpuProcess {
  int pid = 0;
  std::string name;
  std::uint64_t memory_bytes = 0;
  bool draws = false;  // it only draws a screen: every desktop has such
  ProcessOwner owner = ProcessOwner::foreign;
  bool operator==(const GpuProcess&) const = default;
};

struct GpuHealth {
  std::string uuid;          // as in the inventory; may be empty where only the address is known
  std::string pci;           // "0000:3b:00.0", lower case
  bool partitioned = false;  // cut into parts: its processes may sit on any of them
  std::optional<std::uint64_t> memory_total, memory_used;
  std::optional<std::vector<GpuProcess>> processes;  // nullopt: this user cannot see them
  std::vector<std::string> throttle;                 // why clocks are held down now: "hw_thermal_slowdown"
  std::optional<int> temperature_c;
  std::optional<std::uint64_t> ecc_uncorrected, ecc_corrected;  // since the driver was loaded
  std::optional<bool> remap_pending, remap_failed;              // rows of bad memory
  std::string recovery;  // what the driver says must be done: "reset", "reboot", "drain"; empty = nothing, or not told
  std::string problem;   // why the vendor's tool could not read it: "GPU is lost"
  bool operator==(const GpuHealth&) const = default;
};

// Holds one event of the kernel log. Kinds: xid, sxid, gpu_hang, gpu_reset, gpu_lost, gpu_fault (a program's bad
// access), ras (uncorrectable error), machine_check, memory_error, pcie_fatal, disk_error, fs_error, hung_task, oom.
struct KernelEvent {
  std::string kind;
  int code = 0;     // of xid and sxid
  std::string pci;  // of the device, may be empty
  std::string text;
  std::uint64_t stamp_us = 0;  // the log's own clock since boot: grows, so that new events are told from known ones
  std::int64_t age_ms = 0;     // when the report was taken
  int count = 1;               // of this kind, code and device; the stamp is the newest's
  bool operator==(const KernelEvent&) const = default;
};

// Names a vendor's tool that did not answer in time.
struct HungTool {
  std::string tool;
  bool in_kernel = false;  // it cannot even be killed
  bool operator==(const HungTool&) const = default;
};

struct EngineHealth {
  EngineKind kind = EngineKind::docker;
  std::string problem;  // empty: it answers
  bool operator==(const EngineHealth&) const = default;
};

// Describes the disk with the agent's data.
struct DiskHealth {
  std::uint64_t free_bytes = 0, total_bytes = 0;
  bool read_only = false;
  std::string write_problem;             // why a small file could not be written and synced; empty = it could
  std::int64_t write_ms = 0;             // how long that took
  std::uint64_t file_system_errors = 0;  // counted by the file system itself
  std::string drive_problem;  // what the drive says of itself (SMART, NVMe state); empty = nothing, or not told
  bool operator==(const DiskHealth&) const = default;
};

struct Package {
  std::string name;     // "openssh-server", "runc", "linux"
  std::string version;  // as the package manager says; the program's own where there is none
  bool packaged = false;
  bool operator==(const Package&) const = default;
};

struct HealthReport {
  std::string boot_id;
  BootTime taken_at;         // host's clock
  std::int64_t wall_ms = 0;  // host's wall clock then
  BootTime gpus_at;          // when the GPUs were looked at; zero = never. Tools are not run beside jobs
  std::vector<GpuHealth> gpus;
  std::vector<HungTool> hung;
  std::vector<KernelEvent> events;
  std::string log_gap;  // why the kernel log could not be read; empty = it was
  DiskHealth disk;
  std::vector<EngineHealth> engines;
  std::uint64_t memory_bytes = 0, memory_available = 0;
  std::optional<double> memory_pressure;  // percent of the last minute that some program waited for memory
  double load1 = 0, cpus = 0;
  std::optional<double> busy_cpus;  // on average since the last report
  double leased_cpus = 0;
  std::vector<Package> packages;  // only when asked for
  bool operator==(const HealthReport&) const = default;

  [[nodiscard]] bool gpus_fresh() const { return gpus_at.ns > 0 && gpus_at == taken_at; }
};

// Asks for a report no older than `max_age`. An older one is returned at once and a new one started, unless `wait`
// allows waiting for it.
struct HealthRequest {
  Duration max_age{};
  Duration wait{};        // at most k_health_wait_max
  bool gpus = false;      // run the GPU tools also beside jobs
  bool packages = false;  // with versions of what has known weaknesses; makes a new report
  BootTime known;         // taken_at of the report that the asker has: it is not sent again
};
inline constexpr Duration k_health_wait_max = std::chrono::seconds{30};

struct HealthReply {
  BootTime host_time;
  std::int64_t wall_ms = 0;            // host's wall clock now
  bool under_way = false;              // a new report is being made
  std::optional<HealthReport> report;  // the newest there is, unless it is known
};

GRIDCTL_MESSAGE(HealthRequest, parse_health_request)  // op "health"
GRIDCTL_MESSAGE(HealthReply, parse_health_reply)
GRIDCTL_MESSAGE(HealthReport, parse_health_report)  // as kept on the host and in the registry

}  // namespace gridctl::wire
