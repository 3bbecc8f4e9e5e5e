// SPDX-License-Identifier: Apache-2.0
// Reads the values of amdgpu and amdkfd in /sys.
#include <algorithm>
#include <map>

#include "base/formatted.hpp"
#include "base/text.hpp"
#include "probe/amd_reports.hpp"
#include "probe/pci.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::string_view k_nodes = "/sys/class/kfd/kfd/topology/nodes";
constexpr std::uint64_t k_amd = 0x1002;
constexpr std::uint64_t k_memory_min = 1ull << 30;  // a GPU inside a processor has less of its own

using Properties = std::map<std::string, std::uint64_t>;

// Reads lines of the form "key value".
Properties properties_of(const HostFiles& files, const std::string& path) {
  Properties out;
  for (const std::string& line : split_lines(files.read(path).value_or(""))) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    if (const auto value = whole_number(trim(line.substr(blank + 1)))) out[line.substr(0, blank)] = *value;
  }
  return out;
}

std::uint64_t value(const Properties& properties, const char* key) {
  const auto found = properties.find(key);
  return found == properties.end() ? 0 : found->second;
}

// Converts 90402 to gfx942, and 90010 to gfx90a: two decimal digits each of minor version and stepping, written in hex.
std::string gfx_name(std::uint64_t version) {
  if (version < 10'000 || version > 990'000) return {};
  const auto number = static_cast<unsigned>(version);
  return formatted("gfx%u%x%x", number / 10'000, number / 100 % 100, number % 100);
}

std::string address_of(const Properties& p) {
  const auto domain = static_cast<unsigned>(value(p, "domain")),
             location = static_cast<unsigned>(value(p, "location_id"));
  return formatted("%04x:%02x:%02x.%x", domain & 0xffffu, location >> 8 & 0xffu, location >> 3 & 0x1fu, location & 7u);
}

std::string uuid_of(std::uint64_t unique_id) {
  return unique_id == 0 ? "" : formatted("GPU-%016llx", static_cast<unsigned long long>(unique_id));
}

Gpu gpu_of_node(const HostFiles& files, const std::string& node) {
  const Properties p = properties_of(files, node + "/properties");
  Gpu gpu;
  gpu.vendor = Vendor::amd;
  if (value(p, "vendor_id") != k_amd || value(p, "simd_count") == 0) return gpu;
  gpu.pci = address_of(p);
  gpu.uuid = uuid_of(value(p, "unique_id"));
  gpu.arch = gfx_name(value(p, "gfx_target_version"));
  if (const std::uint64_t per_unit = value(p, "simd_per_cu"); per_unit != 0 && value(p, "simd_count") < 100'000)
    gpu.units = static_cast<std::uint32_t>(value(p, "simd_count") / per_unit);
  if (const std::uint64_t mhz = value(p, "max_engine_clk_fcompute"); mhz != 0 && mhz < 100'000)
    gpu.clocks.core_max_mhz = static_cast<std::uint32_t>(mhz);
  for (const std::string& bank : files.list(node + "/mem_banks")) {
    const Properties memory = properties_of(files, node + "/mem_banks/" + bank + "/properties");
    gpu.memory_bytes += value(memory, "size_in_bytes");
    if (const std::uint64_t bits = value(memory, "width"); bits != 0 && bits < 100'000 && !gpu.memory_bus_bits)
      gpu.memory_bus_bits = static_cast<std::uint32_t>(bits);
    if (const std::uint64_t mhz = value(memory, "mem_clk_max"); mhz != 0 && mhz < 100'000 && !gpu.clocks.memory_max_mhz)
      gpu.clocks.memory_max_mhz = static_cast<std::uint32_t>(mhz);
  }
  const std::string device = "/sys/bus/pci/devices/" + gpu.pci;
  gpu.name = available(files.read_line(device + "/product_name"));
  if (gpu.name.empty()) gpu.name = "AMD GPU " + available(files.read_line(device + "/device"));
  return gpu;
}

// Finds the current state, which a line such as "1: 2100Mhz *" marks.
std::optional<std::uint32_t> state_in_force(const HostFiles& files, const std::string& path) {
  for (const std::string& line : split_lines(files.read(path).value_or(""))) {
    const std::size_t colon = line.find(": ");
    if (line.find('*') == std::string::npos || colon == std::string::npos) continue;
    const std::string rest = line.substr(colon + 2);
    const auto mhz = whole_number(rest.substr(0, rest.find_first_not_of("0123456789")));
    if (mhz && *mhz < 100'000) return static_cast<std::uint32_t>(*mhz);
  }
  return std::nullopt;
}

std::optional<double> microwatts(const HostFiles& files, const std::string& path) {
  const auto value = files.read_number(path);
  return value && *value != 0 ? std::optional<double>(static_cast<double>(*value) / 1e6) : std::nullopt;
}

void read_device(const HostFiles& files, Gpu& gpu) {
  const std::string device = "/sys/bus/pci/devices/" + sysfs_address(gpu.pci);
  for (const std::string& sensor : files.list(device + "/hwmon")) {
    const std::string at = device + "/hwmon/" + sensor;
    if (!gpu.power.cap_watts) gpu.power.cap_watts = microwatts(files, at + "/power1_cap");
    if (!gpu.power.default_watts) gpu.power.default_watts = microwatts(files, at + "/power1_cap_default");
    if (!gpu.power.max_watts) gpu.power.max_watts = microwatts(files, at + "/power1_cap_max");
    const auto critical = files.read_number(at + "/temp2_crit");  // junction, in thousandths of a degree
    if (critical && *critical < 1'000'000 && !gpu.heat.slowdown_c)
      gpu.heat.slowdown_c = static_cast<int>(*critical / 1000);
  }
  if (!gpu.clocks.core_mhz) gpu.clocks.core_mhz = state_in_force(files, device + "/pp_dpm_sclk");
  if (!gpu.clocks.memory_mhz) gpu.clocks.memory_mhz = state_in_force(files, device + "/pp_dpm_mclk");
  if (gpu.memory_bytes == 0) gpu.memory_bytes = files.read_number(device + "/mem_info_vram_total").value_or(0);
  const std::string mode = available(files.read_line(device + "/current_compute_partition"));
  if (!mode.empty() && !gpu.partition.enabled) gpu.partition = {mode != "SPX", mode == "SPX" ? "" : mode, ""};
  if (files.exists(device) && !gpu.partition.enabled)
    add_gap(gpu.gaps, "partition.enabled", GapReason::not_supported, "amdgpu shows no compute partition");
}

void complete_with(const Gpu& kernel, Gpu& gpu) {
  if (!gpu.units) gpu.units = kernel.units;
  if (gpu.arch.empty()) gpu.arch = kernel.arch;
  if (!gpu.memory_bus_bits) gpu.memory_bus_bits = kernel.memory_bus_bits;
  if (!gpu.clocks.core_max_mhz) gpu.clocks.core_max_mhz = kernel.clocks.core_max_mhz;
  if (!gpu.clocks.memory_max_mhz) gpu.clocks.memory_max_mhz = kernel.clocks.memory_max_mhz;
  if (gpu.memory_bytes == 0) gpu.memory_bytes = kernel.memory_bytes;
}

}  // namespace

void complete_amd(const HostFiles& files, VendorReading& reading) {
  const bool alone = reading.gpus.empty();
  for (const std::string& node : files.list(k_nodes)) {
    Gpu kernel = gpu_of_node(files, std::string(k_nodes).append("/").append(node));
    if (kernel.pci.empty()) continue;
    if (alone) {
      if (kernel.memory_bytes < k_memory_min || reading.gpus.size() >= k_gpus_max) continue;
      kernel.index = static_cast<int>(reading.gpus.size());
      kernel.driver = available(files.read_line("/sys/module/amdgpu/version"));
      if (kernel.uuid.empty()) kernel.uuid = kernel.pci;
      reading.gpus.push_back(std::move(kernel));
      continue;
    }
    for (Gpu& gpu : reading.gpus)
      if (sysfs_address(gpu.pci) == kernel.pci) complete_with(kernel, gpu);
  }
  for (Gpu& gpu : reading.gpus)
    if (!gpu.pci.empty()) read_device(files, gpu);
}

}  // namespace gridctl::probe
