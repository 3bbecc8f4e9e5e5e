// SPDX-License-Identifier: Apache-2.0
// What a host has, as found by the agent's probe and used by the scheduler. Absent facts are nullopt or empty, never
// guessed. Texts come from the host: sanitise before a terminal sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl {

enum class Vendor : std::uint8_t { nvidia, amd, intel };
[[nodiscard]] std::string_view vendor_name(Vendor vendor);  // "nvidia"
[[nodiscard]] Result<Vendor> parse_vendor(std::string_view name);

struct Gpu {
  Vendor vendor = Vendor::nvidia;
  std::string name;  // the tool's product name, e.g. "NVIDIA GeForce RTX 4090"
  std::string uuid;  // stable id; "GPU-…" for NVIDIA, unique_id or PCI address elsewhere
  std::uint64_t memory_bytes = 0;
  std::string driver;        // driver version
  std::string pci;           // "00000000:01:00.0"
  std::optional<int> index;  // the vendor tool's index
  auto operator<=>(const Gpu&) const = default;
};

enum class EngineKind : std::uint8_t { docker, podman, process };
[[nodiscard]] std::string_view engine_name(EngineKind kind);  // "docker"
[[nodiscard]] Result<EngineKind> parse_engine(std::string_view name);

struct Engine {
  EngineKind kind = EngineKind::process;
  std::string version;
  bool rootless = false;
  bool limits_enforced = false;  // memory and cpu limits really hold
  std::string problem;           // why it cannot be used, empty when it can
  auto operator<=>(const Engine&) const = default;
};

// What the preflight judges besides the inventory proper. An empty home_path means that it was not looked at.
struct HostFacts {
  std::string user;
  std::uint32_t uid = 0;
  std::string home_path;         // where the agent keeps its data
  std::string home_file_system;  // "ext4", "nfs"…
  bool home_writable = false;
  bool home_noexec = false;
  std::string home_problem;        // why it cannot be written, empty when it can
  std::uint64_t shm_bytes = 0;     // size of /dev/shm, 0 = there is none
  bool subuid = false;             // the user has ranges in /etc/subuid and /etc/subgid
  bool newuidmap = false;          // newuidmap and newgidmap are installed
  int cgroup_version = 0;          // 1, 2 or 0 = none mounted
  bool cgroup_delegated = false;   // cpu and memory controllers reach our own cgroup
  std::int64_t clock_wall_ms = 0;  // the host's wall clock
  bool operator==(const HostFacts&) const = default;
};

struct Inventory {
  std::string machine_id;
  std::string boot_id;
  std::string hostname;
  std::string kernel;
  std::string arch;  // uname -m: "x86_64"
  std::string os;    // PRETTY_NAME
  std::string cpu_model;
  double cpus = 0;  // usable CPUs (affinity and cgroup quota counted)
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_free_bytes = 0;  // where gridctl keeps its data on the host
  std::uint64_t disk_total_bytes = 0;
  std::vector<Engine> engines;  // every kind that was looked for, also those with a problem
  std::vector<Gpu> gpus;
  std::string cuda;  // highest CUDA version the driver supports, e.g. "12.4"
  std::string rocm;
  std::string oneapi;
  std::vector<std::string> notes;  // facts that could not be had and why, one line each
  HostFacts facts;
  bool operator==(const Inventory&) const = default;
};

// JSON of fixed shape; parse ignores unknown keys, refuses wrong types and more than 256 GPUs (protocol_violation).
[[nodiscard]] std::string to_json(const Inventory& inventory);
[[nodiscard]] Result<Inventory> parse_inventory(std::string_view json);

}  // namespace gridctl
