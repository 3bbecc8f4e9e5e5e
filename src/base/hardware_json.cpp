// SPDX-License-Identifier: Apache-2.0
#include "base/hardware_json.hpp"

namespace gridctl {

namespace {
constexpr std::uint64_t k_mhz_max = 100'000;
constexpr double k_watts_max = 100'000;
constexpr std::int64_t k_celsius_max = 1000;
constexpr double k_bits_max = 1e15;  // per second; NVLink 5 has 7.2e12 in all
constexpr std::int64_t k_number_max = 1'000'000;
constexpr std::size_t k_words_max = 64;
constexpr std::size_t k_numa_max = 1024;
constexpr int k_pcie_max = 99;  // generations and lanes
}  // namespace

template <class R>
void fields(R& r, Of<R, Gap>& m) {
  r("attribute", m.attribute).word_or("reason", m.reason, gap_reason_name, parse_gap_reason, GapReason::not_reported);
  r("detail", m.detail);
}
GRIDCTL_FIELDS(Gap)

template <class R>
void fields(R& r, Of<R, GpuClocks>& m) {
  r.null_or("core_mhz", m.core_mhz, k_mhz_max).null_or("core_max_mhz", m.core_max_mhz, k_mhz_max);
  r.null_or("memory_mhz", m.memory_mhz, k_mhz_max).null_or("memory_max_mhz", m.memory_max_mhz, k_mhz_max);
}

template <class R>
void fields(R& r, Of<R, GpuPower>& m) {
  r.null_or("draw_watts", m.draw_watts, 0.0, k_watts_max).null_or("cap_watts", m.cap_watts, 0.0, k_watts_max);
  r.null_or("default_watts", m.default_watts, 0.0, k_watts_max).null_or("max_watts", m.max_watts, 0.0, k_watts_max);
}

template <class R>
void fields(R& r, Of<R, GpuHeat>& m) {
  r.null_or("now_c", m.now_c, -k_celsius_max, k_celsius_max);
  r.null_or("slowdown_c", m.slowdown_c, -k_celsius_max, k_celsius_max);
  r.null_or("shutdown_c", m.shutdown_c, -k_celsius_max, k_celsius_max);
}

template <class R>
void fields(R& r, Of<R, PcieLink>& m) {
  r.null_or("generation", m.generation, 0, k_pcie_max).null_or("generation_max", m.generation_max, 0, k_pcie_max);
  r.null_or("width", m.width, 0, k_pcie_max).null_or("width_max", m.width_max, 0, k_pcie_max);
}

template <class R>
void fields(R& r, Of<R, Partition>& m) {
  r.null_or("enabled", m.enabled)("profile", m.profile)("parent", m.parent);
}

template <class R>
void fields(R& r, Of<R, FabricPorts>& m) {
  r.null_or("active", m.active, 0, k_number_max).null_or("bits_per_second", m.bits_per_second, 0.0, k_bits_max);
}

template <class R>
void fields(R& r, Of<R, Gpu>& m) {
  r.word_or("vendor", m.vendor, vendor_name, parse_vendor, Vendor::other);
  r("name", m.name)("uuid", m.uuid).check(!m.uuid.empty(), "has no uuid");
  r("memory_bytes", m.memory_bytes)("driver", m.driver)("pci", m.pci).null_or("index", m.index, 0, k_number_max);
  r("model", m.model)("arch", m.arch).null_or("units", m.units, k_number_max);
  r.null_or("memory_bus_bits", m.memory_bus_bits, k_number_max).null_or("ecc", m.ecc);
  r.null_or("numa_node", m.numa_node, 0, k_number_max).null_or("throttle", m.throttle, k_words_max);
  r("clocks", m.clocks)("power", m.power)("heat", m.heat)("pcie", m.pcie)("partition", m.partition);
  r("fabric", m.fabric)("gaps", m.gaps, k_gaps_max);
}
GRIDCTL_FIELDS(Gpu)

template <class R>
void fields(R& r, Of<R, GpuLink>& m) {
  r("a", m.a)("b", m.b).check(m.a < m.b, "does not join two GPUs");
  r.word_or("kind", m.kind, link_kind_name, parse_link_kind, LinkKind::unknown);
  r.null_or("lanes", m.lanes, 0, k_number_max).null_or("bits_per_second", m.bits_per_second, 0.0, k_bits_max);
}
GRIDCTL_FIELDS(GpuLink)

template <class R>
void fields(R& r, Of<R, Nic>& m) {
  r("device", m.device)("interface", m.interface)("port", m.port, 0, k_number_max);
  r.word_or("kind", m.kind, nic_kind_name, parse_nic_kind, NicKind::other)("up", m.up);
  r.null_or("bits_per_second", m.bits_per_second, 0.0, k_bits_max)("model", m.model)("pci", m.pci);
  r.null_or("numa_node", m.numa_node, 0, k_number_max);
}
GRIDCTL_FIELDS(Nic)

template <class R>
void fields(R& r, Of<R, Disk>& m) {
  r("mount", m.mount)("file_system", m.file_system)("source", m.source);
  r.word_or("kind", m.kind, disk_kind_name, parse_disk_kind, DiskKind::unknown);
  r("total_bytes", m.total_bytes)("free_bytes", m.free_bytes)("read_only", m.read_only);
}
GRIDCTL_FIELDS(Disk)

template <class R>
void fields(R& r, Of<R, NumaNode>& m) {
  r("id", m.id, 0, k_number_max)("cpus", m.cpus)("memory_bytes", m.memory_bytes);
}

template <class R>
void fields(R& r, Of<R, CpuLayout>& m) {
  r.null_or("sockets", m.sockets, 0, k_number_max).null_or("cores", m.cores, 0, k_number_max);
  r.null_or("threads", m.threads, 0, k_number_max).null_or("max_mhz", m.max_mhz, k_mhz_max);
  r("features", m.features, k_words_max)("numa", m.numa, k_numa_max);
}
GRIDCTL_FIELDS(CpuLayout)

}  // namespace gridctl
