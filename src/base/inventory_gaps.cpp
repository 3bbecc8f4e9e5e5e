// SPDX-License-Identifier: Apache-2.0
// Lists the attributes, and finds those without an explanation.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "base/inventory.hpp"
#include "base/text.hpp"

namespace gridctl {

namespace {
using nlohmann::json;

// Attributes by their places in JSON.
constexpr std::array<std::string_view, 29> k_of_gpu{
    "name", "uuid", "memory_bytes", "driver", "pci", "arch", "units", "memory_bus_bits", "ecc", "numa_node",
    "throttle", "clocks.core_mhz", "clocks.core_max_mhz", "clocks.memory_mhz", "clocks.memory_max_mhz",
    "power.draw_watts", "power.cap_watts", "power.default_watts", "power.max_watts", "heat.now_c", "heat.slowdown_c",
    "heat.shutdown_c", "pcie.generation", "pcie.generation_max", "pcie.width", "pcie.width_max", "partition.enabled",
    "fabric.active", "fabric.bits_per_second"};
constexpr std::array<std::string_view, 35> k_of_host{
    "machine_id", "boot_id", "hostname", "kernel", "arch", "os", "product", "virtualization", "cpu_model", "cpus",
    "cpu.sockets", "cpu.cores", "cpu.threads", "cpu.max_mhz", "cpu.features", "cpu.numa", "memory_bytes",
    "memory_free_bytes", "disks", "nics", "gpu_direct", "engines", "gpus", "links", "nvswitch", "cuda", "rocm",
    "oneapi", "software.libc", "software.cuda_toolkit", "software.hip", "software.level_zero",
    "software.container_gpus.docker", "software.container_gpus.toolkit", "software.container_gpus.devices"};

// Numbers that have no null are 0 while they are unknown; of an optional list, an empty one is known.
bool is_filled(const json& owner, std::string_view attribute) {
  const json* value = &owner;
  for (const std::string& name : split(attribute, '.')) value = &value->at(name);
  if (attribute == "memory_bytes" || attribute == "cpus") return *value > 0;
  return !value->is_null() && (attribute == "throttle" || value->is_number() || value->is_boolean() ||
                               (value->is_string() ? *value != "" : !value->empty()));
}

std::vector<std::string> missing_of(std::span<const std::string_view> attributes, const json& owner,
                                    const std::vector<Gap>& gaps) {
  std::vector<std::string> names;
  for (const std::string_view attribute : attributes)
    if (!is_filled(owner, attribute) && find_gap(gaps, attribute) == nullptr) names.emplace_back(attribute);
  return names;
}

// Values that one source did not know may have come from another since: their gaps go.
void explain_all(std::span<const std::string_view> attributes, const json& owner, std::vector<Gap>& gaps,
                 GapReason reason, const std::string& detail) {
  std::erase_if(gaps, [&](const Gap& gap) {
    return std::ranges::find(attributes, gap.attribute) != attributes.end() && is_filled(owner, gap.attribute);
  });
  for (std::string& name : missing_of(attributes, owner, gaps)) add_gap(gaps, std::move(name), reason, detail);
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
  const json host = json::parse(to_json(inventory));
  std::vector<std::string> names = missing_of(k_of_host, host, inventory.gaps);
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i)
    for (const std::string& name : missing_of(k_of_gpu, host["gpus"][i], inventory.gpus[i].gaps))
      names.push_back("gpus[" + std::to_string(i) + "]." + name);
  return names;
}

void explain_rest(Inventory& inventory, GapReason reason, const std::string& detail) {
  const json host = json::parse(to_json(inventory));
  explain_all(k_of_host, host, inventory.gaps, reason, detail);
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i)
    explain_all(k_of_gpu, host["gpus"][i], inventory.gpus[i].gaps, reason, detail);
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
