// SPDX-License-Identifier: Apache-2.0
#include "probe/intel_reports.hpp"

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "probe/pci.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

using nlohmann::json;

namespace {

std::optional<std::uint32_t> number_of(const json& device, std::string_view name, std::uint64_t max) {
  const std::string text = text_of(member(device, name));
  const auto value = whole_number(text.substr(0, text.find(' ')));
  if (!value || *value == 0 || *value > max) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<std::uint32_t> mhz(const HostFiles& files, const std::string& path) {
  const auto value = files.read_number(path);
  return value && *value != 0 && *value < 100'000 ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(*value))
                                                  : std::nullopt;
}

// Splits "GPU 0/0", device and tile, into two words.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string& word : split(line, ' ')) {
    if (word.empty()) continue;
    if (!cells.empty() && cells.back() == "GPU") cells.back() += " " + word;
    else cells.push_back(word);
  }
  return cells;
}

std::optional<std::uint32_t> position_labelled(std::string_view label, const std::vector<Gpu>& gpus) {
  if (!label.starts_with("GPU ") || !label.ends_with("/0")) return std::nullopt;
  const auto index = whole_number(label.substr(4, label.size() - 6));
  for (std::size_t i = 0; index && i < gpus.size(); ++i)
    if (gpus[i].index == static_cast<int>(*index)) return static_cast<std::uint32_t>(i);
  return std::nullopt;
}

GpuLink link_of_cell(std::string_view cell) {
  GpuLink link;
  if (cell.starts_with("XL")) {  // "XL8": eight lanes; "XL*": by way of another tile
    link.kind = LinkKind::xelink;
    if (const auto lanes = whole_number(cell.substr(2)); lanes && *lanes < 1000) link.lanes = static_cast<int>(*lanes);
  } else if (cell == "NODE") {
    link.kind = LinkKind::node;
  } else if (cell == "SYS") {
    link.kind = LinkKind::sys;
  }
  return link;
}

void read_card(const HostFiles& files, const std::string& device, Gpu& gpu) {
  for (const std::string& card : files.list(device + "/drm")) {
    if (!card.starts_with("card")) continue;
    const std::string at = device + "/drm/" + card;  // i915
    fill_in(gpu.clocks.core_mhz, mhz(files, at + "/gt_act_freq_mhz"));
    fill_in(gpu.clocks.core_max_mhz, mhz(files, at + "/gt_RP0_freq_mhz"));
    if (const auto status = files.read_number(at + "/gt/gt0/throttle_reason_status"); status && !gpu.throttle)
      gpu.throttle = *status == 0 ? std::vector<std::string>{} : std::vector<std::string>{"throttled"};
    if (gpu.memory_bytes == 0) gpu.memory_bytes = files.read_number(at + "/lmem_total_bytes").value_or(0);
  }
  const std::string xe = device + "/tile0/gt0/freq0";
  fill_in(gpu.clocks.core_mhz, mhz(files, xe + "/act_freq"));
  fill_in(gpu.clocks.core_max_mhz, mhz(files, xe + "/rp0_freq"));
  if (const auto status = files.read_number(xe + "/throttle/status"); status && !gpu.throttle)
    gpu.throttle = *status == 0 ? std::vector<std::string>{} : std::vector<std::string>{"throttled"};
}

}  // namespace

void read_xpu_facts(const json& device, Gpu& gpu) {
  const auto slices = number_of(device, "number_of_slices", 1000);
  const auto parts = number_of(device, "number_of_sub_slices_per_slice", 1000);
  if (slices && parts && !gpu.units) gpu.units = *slices * *parts;
  fill_in(gpu.memory_bus_bits, number_of(device, "memory_bus_width", 100'000));
  fill_in(gpu.clocks.core_max_mhz, number_of(device, "core_clock_rate_mhz", 100'000));
  fill_in(gpu.pcie.generation_max, number_of(device, "pcie_generation", 9));
  fill_in(gpu.pcie.width_max, number_of(device, "pcie_max_link_width", 64));
  const std::string ecc = lower(available(text_of(member(device, "memory_ecc_state"))));
  if (!ecc.empty() && !gpu.ecc) gpu.ecc = ecc == "enabled";
}

std::vector<GpuLink> read_xpu_topology(std::string_view text, const std::vector<Gpu>& gpus) {
  std::vector<GpuLink> links;
  std::vector<std::string> columns;
  for (const std::string& line : split_lines(text)) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.empty() || !cells[0].starts_with("GPU ")) continue;
    if (columns.empty()) {
      if (cells.size() > 1 && !cells[1].starts_with("GPU ")) return {};  // a row before any head
      columns = cells;
      continue;
    }
    const auto a = position_labelled(cells[0], gpus);
    for (std::size_t i = 0; a && i < columns.size() && i + 1 < cells.size(); ++i) {
      const auto b = position_labelled(columns[i], gpus);
      GpuLink link = link_of_cell(cells[i + 1]);
      if (!b || *b <= *a || link.kind == LinkKind::unknown) continue;
      link.a = *a;
      link.b = *b;
      links.push_back(link);
    }
  }
  return links;
}

void complete_intel(const HostFiles& files, VendorReading& reading) {
  for (Gpu& gpu : reading.gpus) {
    const std::string address = sysfs_address(gpu.pci);
    if (address.empty()) continue;
    const std::string device = "/sys/bus/pci/devices/" + address;
    read_card(files, device, gpu);
    for (const std::string& sensor : files.list(device + "/hwmon")) {
      const auto watts = [&](const char* name) -> std::optional<double> {
        const auto value = files.read_number(device + "/hwmon/" + sensor + "/" + name);  // microwatts
        return value && *value != 0 ? std::optional<double>(static_cast<double>(*value) / 1e6) : std::nullopt;
      };
      if (!gpu.power.cap_watts) gpu.power.cap_watts = watts("power1_max");
      if (!gpu.power.default_watts) gpu.power.default_watts = watts("power1_rated_max");
    }
    add_gap(gpu.gaps, "partition.enabled", GapReason::not_applicable, "Intel GPUs are not partitioned for compute");
  }
}

}  // namespace gridctl::probe
