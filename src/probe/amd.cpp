// SPDX-License-Identifier: Apache-2.0
// Reads AMD GPUs through amd-smi (ROCm 6 and later), completed by rocm-smi, the only tool on older hosts.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "probe/amd_reports.hpp"
#include "probe/tool_text.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {
namespace amd {
namespace {

using nlohmann::json;

enum Query : std::size_t { amd_smi, amd_smi_version, rocm_smi, k_queries, metric = k_queries, topology, rocm_topology };

std::vector<ToolCall> ask_first() {
  return {{{"amd-smi", "static", "--json"}},
          {{"amd-smi", "version", "--json"}},
          {{"rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showuniqueid", "--showbus",
            "--showdriverversion", "--json"}}};
}

// Converts "0x4162405E51BB99B0" to "GPU-4162405e51bb99b0", the name that ROCR_VISIBLE_DEVICES accepts.
std::string gpu_id(std::string_view text) {
  std::string digits = lower(available(text));
  if (digits.starts_with("0x")) digits.erase(0, 2);
  const bool hex = !digits.empty() && digits.size() <= 16 &&
                   digits.find_first_not_of("0123456789abcdef") == std::string::npos &&
                   digits.find_first_not_of('0') != std::string::npos;
  return hex ? "GPU-" + std::string(16 - digits.size(), '0') + digits : std::string();
}

std::string first_text(const json& object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (std::string text = available(text_of(member(object, name))); !text.empty()) return text;
  return {};
}

bool is_hex_code(std::string_view name) { return name.starts_with("0x"); }  // a PCI id in place of a name

// Accepts {"value": 196592, "unit": "MB"}, "196592 MB" or 196592.
std::uint64_t size_of(const json& value) {
  if (value.is_object()) {
    const auto size = memory_size(text_of(member(value, "value")), text_of(member(value, "unit")));
    return size.value_or(0);
  }
  return memory_size(text_of(value), "MB").value_or(0);
}

std::string driver_of(const json& driver) {
  // The kernel's own driver gives all of /proc/version: "Linux version 6.14.0-24-generic (…".
  const std::string text = first_text(driver, {"version", "driver_version"});
  std::string_view version = std::string_view(text).substr(0, text.find('('));
  for (const std::string_view prefix : {"Linux version", "Linuxversion"})
    if (version.starts_with(prefix)) version.remove_prefix(prefix.size());
  return std::string(trim(version));
}

Gpu gpu_of_static(const json& entry) {
  Gpu gpu;
  gpu.vendor = Vendor::amd;
  const json& asic = member(entry, "asic");
  const json& vram = member(entry, "vram");
  if (const auto index = whole_number(text_of(member(entry, "gpu"))); index && *index < k_gpus_max)
    gpu.index = static_cast<int>(*index);
  gpu.name = first_text(asic, {"market_name", "name"});
  if (gpu.name.empty() || is_hex_code(gpu.name)) {
    const std::string board = first_text(member(entry, "board"), {"product_name"});
    if (!board.empty()) gpu.name = board;
  }
  gpu.pci = pci_address(first_text(member(entry, "bus"), {"bdf"}));
  gpu.uuid = gpu_id(text_of(member(asic, "asic_serial")));
  gpu.driver = driver_of(member(entry, "driver"));
  for (const std::string_view key : {"size", "vram_size", "vram_size_mb"})
    if (gpu.memory_bytes == 0) gpu.memory_bytes = size_of(member(vram, key));
  read_amd_static(entry, gpu);
  return gpu;
}

// Reads an array of GPUs, {"gpu_data": […]} since ROCm 7, or one GPU alone.
std::vector<Gpu> read_static(std::string_view text) {
  const json root = find_json(text);
  const json* list = &root;
  if (root.is_object() && root.contains("gpu_data")) list = &root.at("gpu_data");
  std::vector<Gpu> gpus;
  const auto take = [&](const json& entry) {
    if (entry.is_object() && entry.contains("gpu") && gpus.size() < k_gpus_max) gpus.push_back(gpu_of_static(entry));
  };
  if (list->is_array())
    for (const json& entry : *list) take(entry);
  else take(*list);
  return gpus;
}

// Reads {"card0": {…}, "card1": {…}, "system": {"Driver version": "6.3.6"}}.
std::vector<Gpu> read_rocm_smi(std::string_view text) {
  const json root = find_json(text);
  std::vector<Gpu> gpus;
  if (!root.is_object()) return gpus;
  const std::string driver = driver_of(json{{"version", first_text(member(root, "system"), {"Driver version"})}});
  for (const auto& [key, card] : root.items()) {
    const auto index = key.starts_with("card") ? whole_number(std::string_view(key).substr(4)) : std::nullopt;
    if (!index || *index >= k_gpus_max || !card.is_object() || gpus.size() >= k_gpus_max) continue;
    Gpu gpu;
    gpu.vendor = Vendor::amd;
    gpu.index = static_cast<int>(*index);
    for (const std::string_view name : {"Card Series", "Device Name", "Card Model"}) {
      const std::string found = first_text(card, {name});
      if (gpu.name.empty() && !is_hex_code(found)) gpu.name = found;
    }
    if (const std::string id = first_text(card, {"Device ID", "GPU ID"}); gpu.name.empty() && is_hex_code(id))
      gpu.name = "AMD GPU " + id;
    gpu.uuid = gpu_id(text_of(member(card, "Unique ID")));
    gpu.pci = pci_address(text_of(member(card, "PCI Bus")));
    gpu.memory_bytes = memory_size(text_of(member(card, "VRAM Total Memory (B)")), "B").value_or(0);
    gpu.driver = driver;
    gpus.push_back(std::move(gpu));
  }
  std::ranges::sort(gpus, {}, &Gpu::index);
  return gpus;
}

// Adds values that one tool left out from the other: same PCI address, or same index if one lacks the address.
void complete(std::vector<Gpu>& gpus, const std::vector<Gpu>& others) {
  for (Gpu& gpu : gpus)
    for (const Gpu& other : others) {
      const bool same = !gpu.pci.empty() && !other.pci.empty() ? gpu.pci == other.pci : gpu.index == other.index;
      if (!same) continue;
      if (gpu.name.empty() || is_hex_code(gpu.name)) gpu.name = other.name;
      if (gpu.uuid.empty()) gpu.uuid = other.uuid;
      if (gpu.pci.empty()) gpu.pci = other.pci;
      if (gpu.driver.empty()) gpu.driver = other.driver;
      if (gpu.memory_bytes == 0) gpu.memory_bytes = other.memory_bytes;
      break;
    }
}

std::vector<Gpu> read_lists(std::span<const ToolAnswer> answers) {
  std::vector<Gpu> old = read_rocm_smi(answers[rocm_smi].out);
  std::vector<Gpu> gpus = read_static(answers[amd_smi].out);
  if (gpus.empty()) return old;
  complete(gpus, old);
  return gpus;
}

std::vector<ToolCall> ask(std::span<const ToolAnswer> answers) {
  if (answers.empty()) return ask_first();
  if (answers.size() != k_queries) return {};
  const std::size_t gpus = read_lists(answers).size();
  if (gpus == 0) return {};
  std::vector<ToolCall> calls{{{"amd-smi", "metric", "--json"}}};
  if (gpus > 1) {
    calls.push_back({{"amd-smi", "topology", "--json"}});
    calls.push_back({{"rocm-smi", "--showtopotype", "--json"}});
  }
  return calls;
}

// Counts the xGMI ports of a GPU, which are its links to peers.
void count_ports(VendorReading& reading) {
  for (const GpuLink& link : reading.links)
    for (const std::uint32_t end : {link.a, link.b}) {
      FabricPorts& ports = reading.gpus[end].fabric;
      ports.active = ports.active.value_or(0) + 1;
      if (link.bits_per_second) ports.bits_per_second = link.bits_per_second;
    }
}

void read_second_round(std::span<const ToolAnswer> answers, VendorReading& reading) {
  if (answers.size() > metric) {
    read_amd_metric(answers[metric].out, reading.gpus);
    if (answers[metric].found && !answers[metric].answered) reading.notes.push_back(answers[metric].problem);
  }
  if (answers.size() <= rocm_topology) return;
  reading.links = read_amd_topology(answers[topology].out, reading.gpus);
  if (reading.links.empty()) reading.links = read_rocm_topology(answers[rocm_topology].out, reading.gpus);
  count_ports(reading);
  for (Gpu& gpu : reading.gpus)
    if (!gpu.fabric.active && (answers[topology].ok() || answers[rocm_topology].ok()))
      for (const char* attribute : {"fabric.active", "fabric.bits_per_second"})
        add_gap(gpu.gaps, attribute, GapReason::not_supported, "no xGMI link to another GPU");
}

VendorReading read(std::span<const ToolAnswer> answers) {
  VendorReading reading;
  if (answers.size() < k_queries) return reading;
  reading.gpus = read_lists(answers);
  read_second_round(answers, reading);
  for (Gpu& gpu : reading.gpus) {
    if (gpu.name.empty()) gpu.name = "AMD GPU";
    if (gpu.uuid.empty()) gpu.uuid = gpu.pci;
    if (gpu.memory_bytes == 0)
      reading.notes.push_back("amd: GPU " + std::to_string(gpu.index.value_or(0)) + " does not report its memory");
  }
  for (const std::size_t query : {amd_smi, rocm_smi}) {
    const ToolAnswer& answer = answers[query];
    if (!answer.found) continue;
    if (!answer.answered) reading.notes.push_back(answer.problem);
    else if (reading.gpus.empty())
      reading.notes.push_back(answer.tool + ": no GPU listed: " + complaint(answer.out, answer.err));
  }
  const json version = find_json(answers[amd_smi_version].out);
  const json& entry = version.is_array() && !version.empty() ? version.front() : version;
  reading.toolkit = first_text(entry, {"rocm_version", "rocm"});
  return reading;
}

std::string installed_rocm(const HostFiles& files) {
  std::string best;
  for (const std::string& name : files.list("/opt")) {
    if (!name.starts_with("rocm")) continue;
    const std::string text = files.read_line("/opt/" + name + "/.info/version");
    const std::string version = text.substr(0, text.find_first_not_of("0123456789."));
    if (name == "rocm" && !version.empty()) return version;
    if (!version.empty()) best = version;
  }
  return best;
}

}  // namespace
}  // namespace amd

const VendorPlugin k_amd{.vendor = Vendor::amd,
                         .name = "amd",
                         .pci_vendor_id = "0x1002",
                         .driver_advice = "sudo amdgpu-install --usecase=rocm",
                         .toolkit = &Inventory::rocm,
                         .ask = amd::ask,
                         .read = amd::read,
                         .installed_toolkit = amd::installed_rocm,
                         .complete = complete_amd};

}  // namespace gridctl::probe
