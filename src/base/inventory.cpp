// SPDX-License-Identifier: Apache-2.0
#include "base/inventory.hpp"

#include <cstdint>

#include "base/names.hpp"
#include "base/record.hpp"

namespace gridctl {

namespace {
constexpr Names<EngineKind, EngineKind::process> k_engine_names{"docker", "podman", "process"};
}  // namespace

std::string_view engine_name(EngineKind kind) { return k_engine_names(kind); }

Result<EngineKind> parse_engine(std::string_view name) {
  if (const auto kind = k_engine_names.find(name)) return *kind;
  return make_error(Code::usage,
                    "'" + std::string(name.substr(0, 40)) + "' is not an engine: docker, podman or process");
}

namespace {
constexpr std::size_t k_gpus_max = 256;    // no machine has more; a longer list is a lie
constexpr std::size_t k_links_max = 4096;  // 90 GPUs, each with each; all of 256 would not fit a frame
constexpr std::size_t k_engines_max = 16;
constexpr std::size_t k_devices_max = 256;  // disks, network ports
constexpr std::size_t k_notes_max = 256;
constexpr std::size_t k_texts_max = 64;
constexpr double k_cpus_max = 65536;
constexpr std::size_t k_gaps_max = 64;  // there are fewer attributes
constexpr std::uint64_t k_mhz_max = 100'000;
constexpr double k_watts_max = 100'000;
constexpr std::int64_t k_celsius_max = 1000;
constexpr double k_bits_max = 1e15;  // per second; NVLink 5 has 7.2e12 in all
constexpr std::int64_t k_number_max = 1'000'000;
constexpr std::size_t k_words_max = 64;
constexpr std::size_t k_numa_max = 1024;
constexpr int k_pcie_max = 99;  // generations and lanes
constexpr ReadRules k_inventory_rules{.absent_is_unknown = true,
                                      .text_max = 4096,  // bytes: paths are the longest
                                      .count_max = k_devices_max,
                                      .any_text = true};  // what tools print is kept as it is
}  // namespace

template <class R>
void fields(R& r, Of<R, Gap>& m) {
  r("attribute", m.attribute).word_or("reason", m.reason, gap_reason_name, parse_gap_reason, GapReason::not_reported);
  r("detail", m.detail);
}

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

template <class R>
void fields(R& r, Of<R, GpuLink>& m) {
  r("a", m.a)("b", m.b).check(m.a < m.b, "does not join two GPUs");
  r.word_or("kind", m.kind, link_kind_name, parse_link_kind, LinkKind::unknown);
  r.null_or("lanes", m.lanes, 0, k_number_max).null_or("bits_per_second", m.bits_per_second, 0.0, k_bits_max);
}

template <class R>
void fields(R& r, Of<R, Nic>& m) {
  r("device", m.device)("interface", m.interface)("port", m.port, 0, k_number_max);
  r.word_or("kind", m.kind, nic_kind_name, parse_nic_kind, NicKind::other)("up", m.up);
  r.null_or("bits_per_second", m.bits_per_second, 0.0, k_bits_max)("model", m.model)("pci", m.pci);
  r.null_or("numa_node", m.numa_node, 0, k_number_max);
}

template <class R>
void fields(R& r, Of<R, Disk>& m) {
  r("mount", m.mount)("file_system", m.file_system)("source", m.source);
  r.word_or("kind", m.kind, disk_kind_name, parse_disk_kind, DiskKind::unknown);
  r("total_bytes", m.total_bytes)("free_bytes", m.free_bytes)("read_only", m.read_only);
}

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

template <class R>
void fields(R& r, Of<R, ContainerGpus>& m) {
  r("toolkit", m.toolkit).null_or("docker", m.docker)("devices", m.devices, k_texts_max);
}

template <class R>
void fields(R& r, Of<R, Software>& m) {
  r("libc", m.libc)("cuda_toolkit", m.cuda_toolkit)("hip", m.hip)("level_zero", m.level_zero);
  r("container_gpus", m.container_gpus);
}

template <class R>
void fields(R& r, Of<R, Engine>& m) {
  r.word_or("kind", m.kind, engine_name, parse_engine, EngineKind::process);
  r("version", m.version)("rootless", m.rootless)("limits_enforced", m.limits_enforced)("problem", m.problem);
}

template <class R>
void fields(R& r, Of<R, HostFacts>& m) {
  r("user", m.user)("uid", m.uid)("home_path", m.home_path)("home_file_system", m.home_file_system);
  r("home_writable", m.home_writable)("home_noexec", m.home_noexec)("home_problem", m.home_problem);
  r("shm_bytes", m.shm_bytes)("subuid", m.subuid)("newuidmap", m.newuidmap);
  r("cgroup_version", m.cgroup_version, 0, 9)("cgroup_delegated", m.cgroup_delegated);
  r("clock_wall_ms", m.clock_wall_ms, INT64_MIN, INT64_MAX);
}

template <class R>
void fields(R& r, Of<R, Inventory>& m) {
  if constexpr (R::reads) m.version = 1;  // agents before 2 did not say
  r("version", m.version, 0, 1'000'000)("machine_id", m.machine_id)("boot_id", m.boot_id)("hostname", m.hostname);
  r("kernel", m.kernel)("arch", m.arch)("os", m.os)("product", m.product)("virtualization", m.virtualization);
  r("cpu_model", m.cpu_model)("cpus", m.cpus, 0.0, k_cpus_max)("cpu", m.cpu)("memory_bytes", m.memory_bytes);
  r.null_or("memory_free_bytes", m.memory_free_bytes)("disk_free_bytes", m.disk_free_bytes);
  r("disk_total_bytes", m.disk_total_bytes)("disks", m.disks)("nics", m.nics);
  r("gpu_direct", m.gpu_direct, k_texts_max)("engines", m.engines, k_engines_max)("gpus", m.gpus, k_gpus_max);
  r("links", m.links, k_links_max).null_or("nvswitch", m.nvswitch, 0, 1000);
  for (const GpuLink& link : m.links) r.check(link.b < m.gpus.size(), "has a link to a GPU that is not listed");
  r("cuda", m.cuda)("rocm", m.rocm)("oneapi", m.oneapi)("software", m.software)("notes", m.notes, k_notes_max);
  r("gaps", m.gaps, k_gaps_max)("facts", m.facts);
}

std::string to_json(const Inventory& inventory) { return write_record(inventory); }

Result<Inventory> parse_inventory(std::string_view text) {
  return read_record<Inventory>(text, "the inventory", k_inventory_rules, Code::protocol_violation);
}

}  // namespace gridctl
