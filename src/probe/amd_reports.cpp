// SPDX-License-Identifier: Apache-2.0
#include "probe/amd_reports.hpp"

#include <nlohmann/json.hpp>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/pci.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

using nlohmann::json;

namespace {

constexpr double k_number_max = 1e9;

template <class Integer>
std::optional<Integer> whole_of(const json& value, double max = 100'000) {
  const auto number = amd_number(value);
  if (!number || *number < 0 || *number > max) return std::nullopt;
  return static_cast<Integer>(*number);
}

// Reads {"Level 0": "500 MHz", …}: the highest level, and the current one.
void read_levels(const json& clock, std::optional<std::uint32_t>& now, std::optional<std::uint32_t>& most) {
  const json& levels = member(clock, "frequency_levels");
  if (!levels.is_object()) return;
  const auto current = whole_of<std::uint32_t>(member(clock, "current level"));
  for (const auto& [name, value] : levels.items()) {
    const auto mhz = whole_of<std::uint32_t>(value);
    if (!mhz) continue;
    if (!most || *mhz > *most) most = mhz;
    if (current && name == "Level " + std::to_string(*current)) now = mhz;
  }
}

const json& list_of(const json& root, const char* key) {
  return root.is_object() && root.contains(key) ? root.at(key) : root;
}

std::optional<std::uint32_t> position_in_entry(const json& entry, const std::vector<Gpu>& gpus) {
  const std::string bdf = pci_address(text_of(member(entry, "bdf")));
  const auto index = whole_number(text_of(member(entry, "gpu")));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!bdf.empty() && !gpus[i].pci.empty() ? gpus[i].pci == bdf : index && gpus[i].index == static_cast<int>(*index))
      return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

Gpu* gpu_of_entry(const json& entry, std::vector<Gpu>& gpus) {
  const auto at = position_in_entry(entry, gpus);
  return at ? &gpus[*at] : nullptr;
}

// Reads "50000-100000": the least and most megabytes a second of the link.
std::optional<double> link_rate(const json& value) {
  const std::string text = text_of(value);
  const std::size_t dash = text.find('-');
  const auto most = whole_number(trim(std::string_view(text).substr(dash == std::string::npos ? 0 : dash + 1)));
  if (!most || *most == 0 || *most > 100'000'000) return std::nullopt;
  return static_cast<double>(*most) * 8e6;
}

void fill_metric(const json& entry, Gpu& gpu) {
  const json& clock = member(entry, "clock");
  for (const char* name : {"gfx_0", "gfx"}) {
    fill_in(gpu.clocks.core_mhz, whole_of<std::uint32_t>(member(member(clock, name), "clk")));
    fill_in(gpu.clocks.core_max_mhz, whole_of<std::uint32_t>(member(member(clock, name), "max_clk")));
  }
  for (const char* name : {"mem_0", "mem"}) {
    fill_in(gpu.clocks.memory_mhz, whole_of<std::uint32_t>(member(member(clock, name), "clk")));
    fill_in(gpu.clocks.memory_max_mhz, whole_of<std::uint32_t>(member(member(clock, name), "max_clk")));
  }
  const json& power = member(entry, "power");
  fill_in(gpu.power.draw_watts, amd_number(member(power, "socket_power")));
  const std::string throttled = lower(available(text_of(member(power, "throttle_status"))));
  if (throttled == "unthrottled") gpu.throttle.emplace();
  else if (throttled == "throttled") gpu.throttle = std::vector<std::string>{"throttled"};
  const json& heat = member(entry, "temperature");
  for (const char* name : {"hotspot", "edge"}) fill_in(gpu.heat.now_c, whole_of<int>(member(heat, name), 1000));
  const json& pcie = member(entry, "pcie");
  fill_in(gpu.pcie.width, whole_of<int>(member(pcie, "width"), 64));
  if (const auto speed = amd_number(member(pcie, "speed")); speed && !gpu.pcie.generation)
    gpu.pcie.generation = pcie_generation(std::to_string(*speed));
}

}  // namespace

std::optional<double> amd_number(const json& value) {
  if (value.is_object()) return amd_number(member(value, "value"));
  if (value.is_number()) {
    const double number = value.get<double>();
    return number >= 0 && number <= k_number_max ? std::optional<double>(number) : std::nullopt;
  }
  const auto number = leading_number<double>(available(text_of(value)));
  return number && (*number < 0 || *number > k_number_max) ? std::nullopt : number;
}

void read_amd_static(const json& entry, Gpu& gpu) {
  const json& asic = member(entry, "asic");
  gpu.units = whole_of<std::uint32_t>(member(asic, "num_compute_units"), 10'000);
  const std::string arch = lower(available(text_of(member(asic, "target_graphics_version"))));
  if (arch.starts_with("gfx")) gpu.arch = arch;
  gpu.memory_bus_bits = whole_of<std::uint32_t>(member(member(entry, "vram"), "bit_width"));
  const json& bus = member(entry, "bus");
  gpu.pcie.width_max = whole_of<int>(member(bus, "max_pcie_width"), 64);
  if (const auto speed = amd_number(member(bus, "max_pcie_speed")))
    gpu.pcie.generation_max = pcie_generation(std::to_string(*speed));
  gpu.numa_node = whole_of<int>(member(member(entry, "numa"), "node"), 4096);
  const json& limit = member(entry, "limit");
  gpu.power.cap_watts = amd_number(member(limit, "socket_power"));
  gpu.power.max_watts = amd_number(member(limit, "max_power"));
  const json& ppt = member(limit, "ppt0");  // since ROCm 7.1
  fill_in(gpu.power.cap_watts, amd_number(member(ppt, "socket_power_limit")));
  fill_in(gpu.power.max_watts, amd_number(member(ppt, "max_power_limit")));
  for (const char* part : {"hotspot", "edge"}) {
    fill_in(gpu.heat.slowdown_c, whole_of<int>(member(limit, std::string("slowdown_") + part + "_temperature"), 1000));
    fill_in(gpu.heat.shutdown_c, whole_of<int>(member(limit, std::string("shutdown_") + part + "_temperature"), 1000));
  }
  const std::string memory = lower(text_of(member(member(member(entry, "ras"), "ecc_block_state"), "UMC")));
  if (!memory.empty()) gpu.ecc = memory == "enabled";
  const json& partition = member(entry, "partition");
  std::string profile = available(text_of(member(partition, "compute_partition")));
  if (profile.empty()) profile = available(text_of(member(partition, "accelerator_partition")));
  if (!profile.empty()) gpu.partition = {profile != "SPX", profile == "SPX" ? "" : profile, ""};
  const json& clock = member(entry, "clock");
  for (const char* name : {"sys", "gfx_0"})
    read_levels(member(clock, name), gpu.clocks.core_mhz, gpu.clocks.core_max_mhz);
  for (const char* name : {"mem", "mem_0"})
    read_levels(member(clock, name), gpu.clocks.memory_mhz, gpu.clocks.memory_max_mhz);
}

void read_amd_metric(std::string_view text, std::vector<Gpu>& gpus) {
  const json root = find_json(text);
  const json& list = list_of(root, "gpu_data");
  if (!list.is_array()) {
    if (Gpu* gpu = gpu_of_entry(list, gpus)) fill_metric(list, *gpu);
    return;
  }
  for (const json& entry : list)
    if (Gpu* gpu = gpu_of_entry(entry, gpus)) fill_metric(entry, *gpu);
}

std::vector<GpuLink> read_amd_topology(std::string_view text, const std::vector<Gpu>& gpus) {
  std::vector<GpuLink> links;
  const json root = find_json(text);
  const json& list = list_of(root, "gpu_data");
  if (!list.is_array()) return links;
  for (const json& entry : list) {
    const auto a = position_in_entry(entry, gpus);
    const json& peers = member(entry, "links");
    if (!a || !peers.is_array()) continue;
    for (const json& peer : peers) {
      const auto b = position_in_entry(peer, gpus);
      if (!b || *b <= *a || lower(text_of(member(peer, "link_type"))) != "xgmi" || links.size() >= 4096) continue;
      if (lower(text_of(member(peer, "link_status"))) == "disabled") continue;
      links.push_back({*a, *b, LinkKind::xgmi, {}, link_rate(member(peer, "bandwidth"))});
    }
  }
  return links;
}

// Reads {"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI", …}}.
std::vector<GpuLink> read_rocm_topology(std::string_view text, const std::vector<Gpu>& gpus) {
  constexpr std::string_view k_key = "(topology) link type between drm devices ";
  std::vector<GpuLink> links;
  const json root = find_json(text);
  const json& system = member(root, "system");
  if (!system.is_object()) return links;
  for (const auto& [name, value] : system.items()) {
    const std::string key = lower(name);
    const std::size_t between = key.find(" and ", k_key.size());
    if (!key.starts_with(k_key) || between == std::string::npos || lower(text_of(value)) != "xgmi") continue;
    const auto a = position_in_entry(json{{"gpu", key.substr(k_key.size(), between - k_key.size())}}, gpus);
    const auto b = position_in_entry(json{{"gpu", key.substr(between + 5)}}, gpus);
    if (a && b && *a < *b && links.size() < 4096) links.push_back({*a, *b, LinkKind::xgmi, {}, {}});
  }
  return links;
}

}  // namespace gridctl::probe
