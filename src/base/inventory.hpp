// SPDX-License-Identifier: Apache-2.0
// Describes a host's inventory, as found by the agent's probe and used by the scheduler. Absent facts are nullopt or
// empty, never guessed; each absent one has a gap that says why. Texts come from the host: sanitise before a terminal
// sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hardware.hpp"
#include "base/result.hpp"

namespace gridctl {

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

// Names the tools with which a container engine gives GPUs to a container.
struct ContainerGpus {
  std::string toolkit;               // version of the NVIDIA container toolkit
  std::optional<bool> docker;        // docker has a runtime for it
  std::vector<std::string> devices;  // kinds with a CDI specification: "nvidia.com/gpu"
  bool operator==(const ContainerGpus&) const = default;
};

// Describes libraries and processors for which programs on the host are built.
struct Software {
  std::string libc;          // "glibc 2.36", "musl 1.2.4"
  std::string cuda_toolkit;  // installed, "12.4"; what the driver supports is Inventory::cuda
  std::string hip;           // installed HIP runtime
  std::string level_zero;    // installed Level Zero loader
  ContainerGpus container_gpus;
  bool operator==(const Software&) const = default;
};

// Holds facts for the preflight besides the inventory. An empty home_path means that it was not checked.
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

inline constexpr int k_inventory_version = 2;  // 2: parts with their gaps; 1: agents before them

struct Inventory {
  int version = k_inventory_version;  // what the agent that took it knew to look for
  std::string machine_id;
  std::string boot_id;
  std::string hostname;
  std::string kernel;
  std::string arch;            // uname -m: "x86_64"
  std::string os;              // PRETTY_NAME
  std::string product;         // the board's or the cloud's name for the machine: "DGXA100 920-23687-2530-000"
  std::string virtualization;  // "none", "kvm", "docker"…
  std::string cpu_model;
  double cpus = 0;  // usable CPUs (affinity and cgroup quota counted)
  CpuLayout cpu;
  std::uint64_t memory_bytes = 0;                  // usable: the lower of the machine's and the control group's
  std::optional<std::uint64_t> memory_free_bytes;  // available to new programs now
  std::uint64_t disk_free_bytes = 0;               // where gridctl keeps its data on the host
  std::uint64_t disk_total_bytes = 0;
  std::vector<Disk> disks;
  std::vector<Nic> nics;
  std::vector<std::string> gpu_direct;  // ways from network cards into GPU memory: "peermem", "dmabuf"
  std::vector<Engine> engines;          // every kind that was looked for, also those with a problem
  std::vector<Gpu> gpus;
  std::vector<GpuLink> links;   // each pair of GPUs once; pairs of unknown path are left out
  std::optional<int> nvswitch;  // NVSwitch chips on the bus; guests of a virtual machine may not see theirs
  std::string cuda;             // highest CUDA version the driver supports, e.g. "12.4"
  std::string rocm;
  std::string oneapi;
  Software software;
  std::vector<std::string> notes;  // what is worth a person's eye, one line each
  std::vector<Gap> gaps;           // of everything but the GPUs, which have their own
  HostFacts facts;
  bool operator==(const Inventory&) const = default;
};

// Returns the names of attributes that are neither filled nor explained by a gap, "gpus[0].power.cap_watts" for those
// of GPUs. An attribute is filled if its value is known, even if that is zero or an empty list.
[[nodiscard]] std::vector<std::string> unexplained(const Inventory& inventory);
// Gives each of those a gap with that reason, so that nothing stays unexplained.
void explain_rest(Inventory& inventory, GapReason reason, const std::string& detail);
// Adds a gap unless the attribute has one: the first reason is closest to the cause.
void add_gap(std::vector<Gap>& gaps, std::string attribute, GapReason reason, std::string detail = "");
[[nodiscard]] const Gap* find_gap(const std::vector<Gap>& gaps, std::string_view attribute);

// Returns whether GPUs reach each other through NVSwitch. No chip has more than 18 NVLinks: more, summed over its
// peers, are shared.
[[nodiscard]] bool has_nvswitch(const Inventory& inventory);

// Writes JSON with a fixed shape; unknown values are null. parse ignores unknown keys and takes missing ones as unknown
// (agents of other versions), and refuses with protocol_violation what no machine has: wrong types, texts above 4 KiB,
// numbers out of range, more than 256 GPUs, links between GPUs that are not listed.
[[nodiscard]] std::string to_json(const Inventory& inventory);
[[nodiscard]] Result<Inventory> parse_inventory(std::string_view json);

}  // namespace gridctl
