// SPDX-License-Identifier: Apache-2.0
// Describes the parts of a host, as reported by its own tools and files. Unknown values are nullopt or empty, never
// guessed; the gaps of their owner say why. Texts come from the host: sanitise before a terminal sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl {

enum class Vendor : std::uint8_t { nvidia, amd, intel, other };
[[nodiscard]] std::string_view vendor_name(Vendor vendor);  // "nvidia"
[[nodiscard]] Result<Vendor> parse_vendor(std::string_view name);

// States why a host could not report one of its attributes.
enum class GapReason : std::uint8_t {
  not_applicable,  // there is no such thing here: links of a single GPU
  not_supported,   // the device or its driver says that it has none
  not_reported,    // nothing that was asked tells it
  needs_bench,     // only 'provider bench' can know: no tool tells it
  no_tool,         // the tool that would know is not installed
  no_driver,       // the device is there, its driver is not loaded
  denied,          // this user may not look
  timed_out,       // whoever knows did not answer in time
  unreadable,      // what was said could not be understood
};
[[nodiscard]] std::string_view gap_reason_name(GapReason reason);  // "no_tool"
[[nodiscard]] Result<GapReason> parse_gap_reason(std::string_view name);

struct Gap {
  std::string attribute;  // as in JSON, with dots: "power.cap_watts"
  GapReason reason = GapReason::not_reported;
  std::string detail;  // for people, may be empty: "nvidia-smi: no answer within 5s"
  bool operator==(const Gap&) const = default;
};

// Holds clocks in MHz. While nothing runs, `now` is an idle clock.
struct GpuClocks {
  std::optional<std::uint32_t> core_mhz, core_max_mhz, memory_mhz, memory_max_mhz;
  bool operator==(const GpuClocks&) const = default;
};

struct GpuPower {
  std::optional<double> draw_watts;     // now
  std::optional<double> cap_watts;      // the limit in force
  std::optional<double> default_watts;  // the limit as delivered; a lower cap makes a slower GPU
  std::optional<double> max_watts;      // the highest limit that may be set
  bool operator==(const GpuPower&) const = default;
};

// Degrees Celsius.
struct GpuHeat {
  std::optional<int> now_c;
  std::optional<int> slowdown_c;  // clocks fall at this temperature
  std::optional<int> shutdown_c;
  bool operator==(const GpuHeat&) const = default;
};

// Describes the device's own link to the bus. Idle devices save power at a lower generation; a lower width is a fault
// or the slot.
struct PcieLink {
  std::optional<int> generation, generation_max;
  std::optional<int> width, width_max;  // lanes
  bool operator==(const PcieLink&) const = default;
};

// A partitioned GPU is listed as its parts, one Gpu each; those with one parent share one chip.
struct Partition {
  std::optional<bool> enabled;  // MIG mode (NVIDIA), a compute partition other than the whole (AMD)
  std::string profile;          // of this part: "3g.40gb", "CPX"; empty for a whole GPU
  std::string parent;           // uuid of the GPU it is cut from; empty for a whole GPU
  bool operator==(const Partition&) const = default;
};

// Describes the GPU's own ports to other GPUs: NVLink, xGMI or Xe Link.
struct FabricPorts {
  std::optional<int> active;
  std::optional<double> bits_per_second;  // of one port, one direction
  bool operator==(const FabricPorts&) const = default;
};

struct Gpu {
  Vendor vendor = Vendor::nvidia;
  std::string name;  // the tool's product name, e.g. "NVIDIA GeForce RTX 4090"
  std::string uuid;  // stable id; "GPU-…" for NVIDIA, unique_id or PCI address elsewhere
  std::uint64_t memory_bytes = 0;
  std::string driver{};        // driver version
  std::string pci{};           // "00000000:01:00.0"
  std::optional<int> index{};  // the vendor tool's index
  std::string model{};         // key of the catalogue; written by the controller alone, empty = not surely known
  std::string arch{};          // "sm_90", "gfx942", "xe_hpc"
  std::optional<std::uint32_t> units{};            // SMs, compute units, Xe cores
  std::optional<std::uint32_t> memory_bus_bits{};  // width of the memory's bus
  std::optional<bool> ecc{};                       // in force now
  std::optional<int> numa_node{};
  std::optional<std::vector<std::string>>
      throttle{};  // why clocks are held down now: "sw_power_cap"; empty = they are not
  GpuClocks clocks{};
  GpuPower power{};
  GpuHeat heat{};
  PcieLink pcie{};
  Partition partition{};
  FabricPorts fabric{};
  std::vector<Gap> gaps{};
  bool operator==(const Gpu&) const = default;
};

// Describes how two GPUs reach each other. The PCIe classes are those of `nvidia-smi topo`: pix one switch, pxb
// several, phb the host bridge, node several bridges of one NUMA node, sys between NUMA nodes.
enum class LinkKind : std::uint8_t { unknown, nvlink, xgmi, xelink, pix, pxb, phb, node, sys };
[[nodiscard]] std::string_view link_kind_name(LinkKind kind);  // "nvlink"
[[nodiscard]] Result<LinkKind> parse_link_kind(std::string_view name);
[[nodiscard]] bool is_fabric(LinkKind kind);  // made for GPUs: nvlink, xgmi, xelink

struct GpuLink {
  std::uint32_t a = 0, b = 0;  // positions in Inventory::gpus, a < b
  LinkKind kind = LinkKind::unknown;
  std::optional<int> lanes{};               // NVLinks bonded, xGMI hops are always whole links
  std::optional<double> bits_per_second{};  // one direction, as the tools rate it
  bool operator==(const GpuLink&) const = default;
};

enum class NicKind : std::uint8_t { ethernet, roce, infiniband, other };
[[nodiscard]] std::string_view nic_kind_name(NicKind kind);
[[nodiscard]] Result<NicKind> parse_nic_kind(std::string_view name);

// Describes a port of a network card; virtual interfaces are left out.
struct Nic {
  std::string device;     // RDMA device "mlx5_0", empty where there is none
  std::string interface;  // "ib0", "eth0", empty when the port has none
  int port = 1;           // of the RDMA device
  NicKind kind = NicKind::ethernet;
  bool up = false;
  std::optional<double> bits_per_second{};  // rate of the link as it is now
  std::string model{};                      // board or PCI ids: "15b3:1021"
  std::string pci{};
  std::optional<int> numa_node{};
  bool operator==(const Nic&) const = default;
};

enum class DiskKind : std::uint8_t { unknown, nvme, ssd, hdd, network, memory };
[[nodiscard]] std::string_view disk_kind_name(DiskKind kind);
[[nodiscard]] Result<DiskKind> parse_disk_kind(std::string_view name);

// Describes a mounted file system that jobs could write to or read from.
struct Disk {
  std::string mount;        // "/"
  std::string file_system;  // "ext4"
  std::string source;       // "/dev/nvme0n1p2", "server:/export"
  DiskKind kind = DiskKind::unknown;
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // for this user
  bool read_only = false;
  bool operator==(const Disk&) const = default;
};

struct NumaNode {
  int id = 0;
  std::string cpus;  // "0-31,64-95"
  std::uint64_t memory_bytes = 0;
  bool operator==(const NumaNode&) const = default;
};

// Describes the processors, whatever part of them this user may use.
struct CpuLayout {
  std::optional<int> sockets, cores, threads;
  std::optional<std::uint32_t> max_mhz;
  std::vector<std::string> features;  // of those that decide which programs run: "avx2", "avx512f", "amx_tile", "sve"
  std::vector<NumaNode> numa;
  bool operator==(const CpuLayout&) const = default;
};

}  // namespace gridctl
