// SPDX-License-Identifier: Apache-2.0
#include "probe/nvidia_reports.hpp"

#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/tool_text.hpp"
#include "xml/document.hpp"

namespace gridctl::probe {
namespace {

// Returns the reason why a field has no value: nvidia-smi says N/A if the device lacks the feature.
GapReason reason_of(std::string_view text) {
  const std::string said = lower(text);
  if (said.find("permission") != std::string::npos) return GapReason::denied;
  if (said.find("error") != std::string::npos || said.find("lost") != std::string::npos) return GapReason::unreadable;
  if (said.find("deprecated") != std::string::npos) return GapReason::not_reported;
  return GapReason::not_supported;
}

// Reads fields of one GPU's element; each field is either filled or a gap.
class Fields {
 public:
  Fields(const xml::Element& node, Gpu& gpu) : node_(node), gpu_(gpu) {}

  // Returns the text of the first path with a value; adds a gap for the attribute if none has one.
  std::string text(std::initializer_list<std::string_view> paths, std::string_view attribute) {
    GapReason reason = GapReason::not_reported;
    for (const std::string_view path : paths) {
      const xml::Element* found = node_.find(path);
      if (found == nullptr) continue;
      const bool words = lower(found->text).find("deprecated") != std::string::npos;
      if (!words && !is_unavailable(found->text)) return found->text;
      reason = reason_of(found->text);
    }
    if (!attribute.empty()) add_gap(gpu_.gaps, std::string(attribute), reason, "nvidia-smi -q");
    return {};
  }
  std::optional<double> real(std::initializer_list<std::string_view> paths, std::string_view attribute) {
    const std::string value = text(paths, attribute);
    const auto number = leading_number<double>(value);
    if (value.empty()) return std::nullopt;
    if (number && *number > -1000 && *number < 100'000) return number;
    if (!attribute.empty()) add_gap(gpu_.gaps, std::string(attribute), GapReason::unreadable, "nvidia-smi -q");
    return std::nullopt;
  }
  template <class Integer>
  std::optional<Integer> whole(std::initializer_list<std::string_view> paths, std::string_view attribute,
                               double max = 100'000) {
    const auto value = real(paths, attribute);
    if (!value || *value < 0 || *value > max) return std::nullopt;
    return static_cast<Integer>(*value);
  }
  std::optional<bool> flag(std::initializer_list<std::string_view> paths, std::string_view attribute) {
    const std::string value = lower(text(paths, attribute));
    if (value.empty()) return std::nullopt;
    return value == "enabled";
  }

 private:
  const xml::Element& node_;
  Gpu& gpu_;
};

// Newer drivers report the distance to the limit instead of the limit: at a margin of `threshold`, the limit takes
// effect.
std::optional<int> limit_of(Fields& fields, std::string_view absolute, std::string_view margin,
                            std::string_view attribute) {
  if (const auto limit = fields.whole<int>({absolute}, "")) return limit;
  const auto now = fields.real({"temperature/gpu_temp"}, "");
  const auto left = fields.real({"temperature/gpu_temp_tlimit"}, "");
  const auto threshold = fields.real({margin}, "");
  if (now && left && threshold) return static_cast<int>(*now + *left - *threshold);
  if (!attribute.empty()) (void)fields.real({absolute, margin}, attribute);  // its gap tells why
  return std::nullopt;
}

std::optional<std::vector<std::string>> throttle_of(const xml::Element& node) {
  const xml::Element* reasons = node.find("clocks_event_reasons");
  if (reasons == nullptr) reasons = node.find("clocks_throttle_reasons");
  if (reasons == nullptr || reasons->children.empty()) return std::nullopt;
  std::vector<std::string> active;
  for (const xml::Element& child : reasons->children) {
    std::string_view name = child.name;
    for (const std::string_view prefix : {"clocks_event_reason_", "clocks_throttle_reason_"})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    if (lower(child.text) == "active" && name != "gpu_idle" && active.size() < 16) active.push_back(available(name));
  }
  return active;
}

void fill(const xml::Element& node, Gpu& gpu) {
  Fields f(node, gpu);
  const auto mhz = [&](std::string_view path, std::string_view attribute) {
    return f.whole<std::uint32_t>({path}, attribute);
  };
  gpu.clocks = {mhz("clocks/sm_clock", "clocks.core_mhz"), mhz("max_clocks/sm_clock", "clocks.core_max_mhz"),
                mhz("clocks/mem_clock", "clocks.memory_mhz"), mhz("max_clocks/mem_clock", "clocks.memory_max_mhz")};
  gpu.power.draw_watts = f.real({"gpu_power_readings/instant_power_draw", "gpu_power_readings/average_power_draw",
                                 "gpu_power_readings/power_draw", "power_readings/power_draw"},
                                "power.draw_watts");
  gpu.power.cap_watts = f.real({"gpu_power_readings/current_power_limit", "gpu_power_readings/power_limit",
                                "power_readings/enforced_power_limit", "power_readings/power_limit"},
                               "power.cap_watts");
  gpu.power.default_watts =
      f.real({"gpu_power_readings/default_power_limit", "power_readings/default_power_limit"}, "power.default_watts");
  gpu.power.max_watts =
      f.real({"gpu_power_readings/max_power_limit", "power_readings/max_power_limit"}, "power.max_watts");
  gpu.heat.now_c = f.whole<int>({"temperature/gpu_temp"}, "heat.now_c");
  gpu.heat.slowdown_c = limit_of(f, "temperature/gpu_temp_slow_threshold", "temperature/gpu_temp_slow_tlimit_threshold",
                                 "heat.slowdown_c");
  gpu.heat.shutdown_c =
      limit_of(f, "temperature/gpu_temp_max_threshold", "temperature/gpu_temp_max_tlimit_threshold", "heat.shutdown_c");
  const std::string gen = "pci/pci_gpu_link_info/pcie_gen/", width = "pci/pci_gpu_link_info/link_widths/";
  gpu.pcie.generation = f.whole<int>({gen + "current_link_gen"}, "pcie.generation", 99);
  gpu.pcie.generation_max =
      f.whole<int>({gen + "max_device_link_gen", gen + "max_link_gen"}, "pcie.generation_max", 99);
  gpu.pcie.width = f.whole<int>({width + "current_link_width"}, "pcie.width", 99);
  gpu.pcie.width_max = f.whole<int>({width + "max_link_width"}, "pcie.width_max", 99);
  gpu.ecc = f.flag({"ecc_mode/current_ecc"}, "ecc");
  gpu.partition.enabled = f.flag({"mig_mode/current_mig"}, "partition.enabled");
  gpu.throttle = throttle_of(node);
}

Gpu* gpu_of_node(const xml::Element& node, std::vector<Gpu>& gpus) {
  const xml::Element* uuid = node.find("uuid");
  for (Gpu& gpu : gpus)
    if ((uuid != nullptr && gpu.uuid == uuid->text) || (!gpu.pci.empty() && gpu.pci == pci_address(node.id)))
      return &gpu;
  return nullptr;
}

std::optional<int> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  const auto value = whole_number(text.substr(0, text.find_first_not_of("0123456789")));
  if (!value || *value >= k_gpus_max) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<std::uint32_t> position_of_index(const std::vector<Gpu>& gpus, int index) {
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i].index == index) return static_cast<std::uint32_t>(i);
  return std::nullopt;
}

std::vector<std::string> words_of_line(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line) {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// Removes the escape sequences that underline the head line.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

GpuLink nvlink_of_cell(std::string_view cell) {
  GpuLink link;
  if (const auto lanes = number_after(cell, "NV")) {
    link.kind = LinkKind::nvlink;
    link.lanes = lanes;
    return link;
  }
  constexpr std::array<std::pair<std::string_view, LinkKind>, 5> classes{{{"PIX", LinkKind::pix},
                                                                          {"PXB", LinkKind::pxb},
                                                                          {"PHB", LinkKind::phb},
                                                                          {"NODE", LinkKind::node},
                                                                          {"SYS", LinkKind::sys}}};
  for (const auto& [name, kind] : classes)
    if (cell == name) link.kind = kind;
  return link;
}

}  // namespace

std::vector<MigDetails> read_nvidia_xml(const ToolAnswer& answer, std::vector<Gpu>& gpus) {
  std::vector<MigDetails> devices;
  const xml::Element root = xml::parse_what_is_there(answer.out);
  for (const xml::Element* node : root.all("gpu")) {
    Gpu* gpu = gpu_of_node(*node, gpus);
    if (gpu == nullptr) continue;
    fill(*node, *gpu);
    const xml::Element* list = node->find("mig_devices");
    for (const xml::Element* device : list == nullptr ? std::vector<const xml::Element*>{} : list->all("mig_device")) {
      Fields f(*device, *gpu);
      const auto index = f.whole<int>({"index"}, "", 1000);
      const auto units = f.whole<std::uint32_t>({"device_attributes/shared/multiprocessor_count"}, "", 10'000);
      const auto memory = memory_size(f.text({"fb_memory_usage/total"}, ""), "MiB");
      if (index && gpu->index && devices.size() < k_gpus_max)
        devices.push_back({*gpu->index, *index, units.value_or(0), memory.value_or(0)});
    }
  }
  return devices;
}

std::string cuda_of_xml(std::string_view text) {
  const xml::Element root = xml::parse_what_is_there(text);
  const xml::Element* version = root.find("cuda_version");
  return version == nullptr ? std::string() : available(version->text);
}

void read_compute_capability(const ToolAnswer& answer, std::vector<Gpu>& gpus) {
  for (const std::string& line : split_lines(answer.out)) {
    const std::size_t comma = line.find(',');
    if (comma == std::string::npos) continue;
    const std::string uuid(trim(std::string_view(line).substr(0, comma)));
    const std::string_view version = trim(std::string_view(line).substr(comma + 1));
    const std::size_t dot = version.find('.');
    const auto major = whole_number(version.substr(0, dot));
    const auto minor = dot == std::string_view::npos ? std::nullopt : whole_number(version.substr(dot + 1));
    if (!major || !minor || *major > 99 || *minor > 9) continue;
    for (Gpu& gpu : gpus)
      if (gpu.uuid == uuid) gpu.arch = "sm_" + std::to_string(*major) + std::to_string(*minor);
  }
}

void read_nvlinks(const ToolAnswer& answer, std::vector<Gpu>& gpus) {
  constexpr double k_bits_per_gb = 8e9;
  Gpu* gpu = nullptr;
  for (const std::string& raw : split_lines(answer.out)) {
    const std::string_view line = trim(raw);
    if (const auto index = number_after(line, "GPU ")) {
      const auto at = position_of_index(gpus, *index);
      gpu = at ? &gpus[*at] : nullptr;
      continue;
    }
    const std::size_t colon = line.find(": ");
    if (gpu == nullptr || !number_after(line, "Link ") || colon == std::string_view::npos) continue;
    if (!gpu->fabric.active) gpu->fabric.active = 0;
    const auto rate = leading_number<double>(trim(line.substr(colon + 2)));
    if (!rate || *rate <= 0 || *rate > 10'000) continue;  // "<inactive>"
    ++*gpu->fabric.active;
    gpu->fabric.bits_per_second = *rate * k_bits_per_gb;
  }
}

std::vector<GpuLink> read_nvidia_topology(std::string_view text, const std::vector<Gpu>& gpus) {
  std::vector<GpuLink> links;
  std::vector<std::optional<std::uint32_t>> columns;  // by column, the position of its GPU
  for (const std::string& raw : split_lines(without_escapes(text))) {
    const std::vector<std::string> words = words_of_line(raw);
    if (words.empty()) continue;
    if (columns.empty()) {
      if (words[0] != "GPU0" || (words.size() > 1 && words[1] == "X")) continue;
      for (const std::string& word : words) {
        const auto index = number_after(word, "GPU");
        if (!index) break;  // network cards and affinities follow
        columns.push_back(position_of_index(gpus, *index));
      }
      continue;
    }
    const auto row = number_after(words[0], "GPU");
    const auto a = row ? position_of_index(gpus, *row) : std::nullopt;
    if (!a) continue;
    for (std::size_t column = 0; column < columns.size() && column + 1 < words.size(); ++column) {
      GpuLink link = nvlink_of_cell(words[column + 1]);
      if (!columns[column] || *columns[column] <= *a || link.kind == LinkKind::unknown) continue;
      link.a = *a;
      link.b = *columns[column];
      links.push_back(link);
    }
  }
  return links;
}

}  // namespace gridctl::probe
