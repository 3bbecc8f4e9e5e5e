// SPDX-License-Identifier: Apache-2.0
// Lists the attributes, and finds those without an explanation.
#include <algorithm>
#include <array>

#include "base/inventory.hpp"

namespace gridctl {

namespace {

template <class Owner>
struct Attribute {
  std::string_view name;  // its place in JSON
  bool (*filled)(const Owner&);
};

constexpr std::array<Attribute<Gpu>, 29> k_of_gpu{{
    {"name", [](const Gpu& g) { return !g.name.empty(); }},
    {"uuid", [](const Gpu& g) { return !g.uuid.empty(); }},
    {"memory_bytes", [](const Gpu& g) { return g.memory_bytes != 0; }},
    {"driver", [](const Gpu& g) { return !g.driver.empty(); }},
    {"pci", [](const Gpu& g) { return !g.pci.empty(); }},
    {"arch", [](const Gpu& g) { return !g.arch.empty(); }},
    {"units", [](const Gpu& g) { return g.units.has_value(); }},
    {"memory_bus_bits", [](const Gpu& g) { return g.memory_bus_bits.has_value(); }},
    {"ecc", [](const Gpu& g) { return g.ecc.has_value(); }},
    {"numa_node", [](const Gpu& g) { return g.numa_node.has_value(); }},
    {"throttle", [](const Gpu& g) { return g.throttle.has_value(); }},
    {"clocks.core_mhz", [](const Gpu& g) { return g.clocks.core_mhz.has_value(); }},
    {"clocks.core_max_mhz", [](const Gpu& g) { return g.clocks.core_max_mhz.has_value(); }},
    {"clocks.memory_mhz", [](const Gpu& g) { return g.clocks.memory_mhz.has_value(); }},
    {"clocks.memory_max_mhz", [](const Gpu& g) { return g.clocks.memory_max_mhz.has_value(); }},
    {"power.draw_watts", [](const Gpu& g) { return g.power.draw_watts.has_value(); }},
    {"power.cap_watts", [](const Gpu& g) { return g.power.cap_watts.has_value(); }},
    {"power.default_watts", [](const Gpu& g) { return g.power.default_watts.has_value(); }},
    {"power.max_watts", [](const Gpu& g) { return g.power.max_watts.has_value(); }},
    {"heat.now_c", [](const Gpu& g) { return g.heat.now_c.has_value(); }},
    {"heat.slowdown_c", [](const Gpu& g) { return g.heat.slowdown_c.has_value(); }},
    {"heat.shutdown_c", [](const Gpu& g) { return g.heat.shutdown_c.has_value(); }},
    {"pcie.generation", [](const Gpu& g) { return g.pcie.generation.has_value(); }},
    {"pcie.generation_max", [](const Gpu& g) { return g.pcie.generation_max.has_value(); }},
    {"pcie.width", [](const Gpu& g) { return g.pcie.width.has_value(); }},
    {"pcie.width_max", [](const Gpu& g) { return g.pcie.width_max.has_value(); }},
    {"partition.enabled", [](const Gpu& g) { return g.partition.enabled.has_value(); }},
    {"fabric.active", [](const Gpu& g) { return g.fabric.active.has_value(); }},
    {"fabric.bits_per_second", [](const Gpu& g) { return g.fabric.bits_per_second.has_value(); }},
}};

constexpr std::array<Attribute<Inventory>, 35> k_of_host{{
    {"machine_id", [](const Inventory& i) { return !i.machine_id.empty(); }},
    {"boot_id", [](const Inventory& i) { return !i.boot_id.empty(); }},
    {"hostname", [](const Inventory& i) { return !i.hostname.empty(); }},
    {"kernel", [](const Inventory& i) { return !i.kernel.empty(); }},
    {"arch", [](const Inventory& i) { return !i.arch.empty(); }},
    {"os", [](const Inventory& i) { return !i.os.empty(); }},
    {"product", [](const Inventory& i) { return !i.product.empty(); }},
    {"virtualization", [](const Inventory& i) { return !i.virtualization.empty(); }},
    {"cpu_model", [](const Inventory& i) { return !i.cpu_model.empty(); }},
    {"cpus", [](const Inventory& i) { return i.cpus > 0; }},
    {"cpu.sockets", [](const Inventory& i) { return i.cpu.sockets.has_value(); }},
    {"cpu.cores", [](const Inventory& i) { return i.cpu.cores.has_value(); }},
    {"cpu.threads", [](const Inventory& i) { return i.cpu.threads.has_value(); }},
    {"cpu.max_mhz", [](const Inventory& i) { return i.cpu.max_mhz.has_value(); }},
    {"cpu.features", [](const Inventory& i) { return !i.cpu.features.empty(); }},
    {"cpu.numa", [](const Inventory& i) { return !i.cpu.numa.empty(); }},
    {"memory_bytes", [](const Inventory& i) { return i.memory_bytes != 0; }},
    {"memory_free_bytes", [](const Inventory& i) { return i.memory_free_bytes.has_value(); }},
    {"disks", [](const Inventory& i) { return !i.disks.empty(); }},
    {"nics", [](const Inventory& i) { return !i.nics.empty(); }},
    {"gpu_direct", [](const Inventory& i) { return !i.gpu_direct.empty(); }},
    {"engines", [](const Inventory& i) { return !i.engines.empty(); }},
    {"gpus", [](const Inventory& i) { return !i.gpus.empty(); }},
    {"links", [](const Inventory& i) { return !i.links.empty(); }},
    {"nvswitch", [](const Inventory& i) { return i.nvswitch.has_value(); }},
    {"cuda", [](const Inventory& i) { return !i.cuda.empty(); }},
    {"rocm", [](const Inventory& i) { return !i.rocm.empty(); }},
    {"oneapi", [](const Inventory& i) { return !i.oneapi.empty(); }},
    {"software.libc", [](const Inventory& i) { return !i.software.libc.empty(); }},
    {"software.cuda_toolkit", [](const Inventory& i) { return !i.software.cuda_toolkit.empty(); }},
    {"software.hip", [](const Inventory& i) { return !i.software.hip.empty(); }},
    {"software.level_zero", [](const Inventory& i) { return !i.software.level_zero.empty(); }},
    {"software.container_gpus.docker", [](const Inventory& i) { return i.software.container_gpus.docker.has_value(); }},
    {"software.container_gpus.toolkit", [](const Inventory& i) { return !i.software.container_gpus.toolkit.empty(); }},
    {"software.container_gpus.devices", [](const Inventory& i) { return !i.software.container_gpus.devices.empty(); }},
}};

template <class Owner, std::size_t N>
std::vector<std::string> missing_of(const std::array<Attribute<Owner>, N>& attributes, const Owner& owner) {
  std::vector<std::string> names;
  for (const Attribute<Owner>& attribute : attributes)
    if (!attribute.filled(owner) && find_gap(owner.gaps, attribute.name) == nullptr) names.emplace_back(attribute.name);
  return names;
}

// Values that one source did not know may have come from another since.
template <class Owner, std::size_t N>
void drop_filled(const std::array<Attribute<Owner>, N>& attributes, Owner& owner) {
  for (const Attribute<Owner>& attribute : attributes)
    if (attribute.filled(owner))
      std::erase_if(owner.gaps, [&](const Gap& gap) { return gap.attribute == attribute.name; });
}

constexpr int k_nvlinks_max = 18;  // of one chip: 6 on V100, 12 on A100, 18 since H100

}  // namespace

const Gap* find_gap(const std::vector<Gap>& gaps, std::string_view attribute) {
  const auto found = std::ranges::find(gaps, attribute, &Gap::attribute);
  return found == gaps.end() ? nullptr : &*found;
}

void add_gap(std::vector<Gap>& gaps, std::string attribute, GapReason reason, std::string detail) {
  if (find_gap(gaps, attribute) == nullptr) gaps.push_back({std::move(attribute), reason, std::move(detail)});
}

std::vector<std::string> unexplained(const Inventory& inventory) {
  std::vector<std::string> names = missing_of(k_of_host, inventory);
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i)
    for (const std::string& name : missing_of(k_of_gpu, inventory.gpus[i]))
      names.push_back("gpus[" + std::to_string(i) + "]." + name);
  return names;
}

void explain_rest(Inventory& inventory, GapReason reason, const std::string& detail) {
  drop_filled(k_of_host, inventory);
  for (std::string& name : missing_of(k_of_host, inventory)) add_gap(inventory.gaps, std::move(name), reason, detail);
  for (Gpu& gpu : inventory.gpus) {
    drop_filled(k_of_gpu, gpu);
    for (std::string& name : missing_of(k_of_gpu, gpu)) add_gap(gpu.gaps, std::move(name), reason, detail);
  }
}

bool has_nvswitch(const Inventory& inventory) {
  if (inventory.nvswitch.value_or(0) > 0) return true;
  std::vector<int> lanes(inventory.gpus.size(), 0);
  for (const GpuLink& link : inventory.links) {
    if (link.kind != LinkKind::nvlink || link.a >= lanes.size() || link.b >= lanes.size()) continue;
    lanes[link.a] += link.lanes.value_or(0);
    lanes[link.b] += link.lanes.value_or(0);
  }
  return std::ranges::any_of(lanes, [](int sum) { return sum > k_nvlinks_max; });
}

}  // namespace gridctl
