// SPDX-License-Identifier: Apache-2.0
#include "base/inventory.hpp"

#include <cstdint>

#include "base/hardware_json.hpp"
#include "base/names.hpp"

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
constexpr ReadRules k_inventory_rules{.absent_is_unknown = true,
                                      .text_max = 4096,  // bytes: paths are the longest
                                      .count_max = k_devices_max,
                                      .any_text = true};  // what tools print is kept as it is
}  // namespace

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
