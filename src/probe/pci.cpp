// SPDX-License-Identifier: Apache-2.0
#include "probe/pci.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::size_t k_linked_gpus_max = 64;  // 2016 pairs; more GPUs in one machine are partitions

std::string directory_of(std::string_view address) {
  const std::string name = sysfs_address(address);
  return name.empty() ? std::string() : "/sys/bus/pci/devices/" + name;
}

std::optional<int> lanes(std::string_view text) {
  const auto width = whole_number(trim(text));
  if (!width || *width == 0 || *width > 64) return std::nullopt;  // 0 and 255 mean that the link is down or hidden
  return static_cast<int>(*width);
}

// Returns the bridges from the root complex down to the device: {"pci0000:17", "0000:17:01.0", "0000:18:00.0", …, the
// device}.
std::vector<std::string> branch_of(const HostFiles& files, std::string_view address) {
  const std::string directory = directory_of(address);
  if (directory.empty()) return {};
  std::error_code error;
  const os::Path target = std::filesystem::read_symlink(files.at(directory), error);
  if (error) return {};
  std::vector<std::string> branch;
  for (const os::Path& part : target) {
    const std::string name = part.string();
    if (name.starts_with("pci") || !sysfs_address(name).empty()) branch.push_back(name);
  }
  return branch;
}

}  // namespace

std::string sysfs_address(std::string_view address) {
  const std::string low = lower(trim(address));
  const std::size_t last = low.rfind(':');
  const std::size_t first = low.find(':');
  if (first == std::string::npos || low.find_first_not_of("0123456789abcdef:.") != std::string::npos) return {};
  const std::string domain = first == last ? "0000" : low.substr(0, first);
  const std::string rest = first == last ? low : low.substr(first + 1);
  if (rest.size() != 7 || rest[2] != ':' || rest[5] != '.' || domain.empty() || domain.size() > 8) return {};
  // nvidia-smi writes the domain with eight digits, /sys with at least four.
  std::string digits = domain;
  while (digits.size() > 4 && digits.front() == '0') digits.erase(0, 1);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits + ":" + rest;
}

std::optional<int> pcie_generation(std::string_view speed) {
  constexpr std::array<double, 7> rates{2.5, 5, 8, 16, 32, 64, 128};  // GT/s of generations 1 to 7
  const auto rate = leading_number<double>(trim(speed));
  for (std::size_t i = 0; rate && i < rates.size(); ++i)
    if (std::abs(rates[i] - *rate) < 0.1) return static_cast<int>(i) + 1;
  return std::nullopt;
}

PcieLink pcie_link(const HostFiles& files, std::string_view address) {
  const std::string directory = directory_of(address);
  if (directory.empty()) return {};
  return {pcie_generation(files.read_line(directory + "/current_link_speed")),
          pcie_generation(files.read_line(directory + "/max_link_speed")),
          lanes(files.read_line(directory + "/current_link_width")),
          lanes(files.read_line(directory + "/max_link_width"))};
}

std::optional<int> pci_numa_node(const HostFiles& files, std::string_view address) {
  const std::string directory = directory_of(address);
  if (directory.empty()) return std::nullopt;
  const auto node = files.read_number(directory + "/numa_node");  // "-1" is no number here
  return node && *node < 4096 ? std::optional<int>(static_cast<int>(*node)) : std::nullopt;
}

LinkKind pci_path(const HostFiles& files, std::string_view a, std::string_view b) {
  const std::vector<std::string> one = branch_of(files, a), other = branch_of(files, b);
  if (one.size() < 2 || other.size() < 2) return LinkKind::unknown;
  std::size_t common = 0;
  while (common < one.size() && common < other.size() && one[common] == other[common]) ++common;
  if (common == 0) {
    const auto node = pci_numa_node(files, a);
    return node && node == pci_numa_node(files, b) ? LinkKind::node : LinkKind::sys;
  }
  if (common == 1) return LinkKind::phb;  // only the root complex
  // A switch is an upstream port with downstream ports beneath; a path through one of them crosses one switch.
  const std::size_t below = std::max(one.size(), other.size()) - common;
  return below <= 2 ? LinkKind::pix : LinkKind::pxb;
}

bool bus_lacks(const HostFiles& files, std::string_view address) {
  const std::string directory = directory_of(address);
  return !directory.empty() && !files.list("/sys/bus/pci/devices").empty() && !files.exists(directory + "/vendor");
}

int count_nvswitches(const HostFiles& files) {
  int count = 0;
  for (const std::string& address : files.list("/sys/bus/pci/devices")) {
    const std::string directory = "/sys/bus/pci/devices/" + address;
    if (files.read_line(directory + "/vendor") == "0x10de" &&
        files.read_line(directory + "/class").starts_with("0x0680"))
      ++count;
  }
  return count;
}

void complete_from_bus(const HostFiles& files, std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus) {
    const PcieLink link = pcie_link(files, gpu.pci);
    if (!gpu.pcie.generation) gpu.pcie.generation = link.generation;
    if (!gpu.pcie.generation_max) gpu.pcie.generation_max = link.generation_max;
    if (!gpu.pcie.width) gpu.pcie.width = link.width;
    if (!gpu.pcie.width_max) gpu.pcie.width_max = link.width_max;
    if (!gpu.numa_node) gpu.numa_node = pci_numa_node(files, gpu.pci);
    if (!gpu.numa_node) {
      const std::string directory = directory_of(gpu.pci);
      if (!directory.empty() && files.exists(directory + "/numa_node"))
        add_gap(gpu.gaps, "numa_node", GapReason::not_applicable, "the machine has a single node, or hides its nodes");
      else add_gap(gpu.gaps, "numa_node", GapReason::not_reported, "the device is not in /sys/bus/pci");
    }
  }
}

void add_bus_links(const HostFiles& files, Inventory& inventory) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  for (const GpuLink& link : inventory.links) known.insert({link.a, link.b});
  const std::size_t count = std::min(inventory.gpus.size(), k_linked_gpus_max);
  for (std::uint32_t a = 0; a < count; ++a)
    for (std::uint32_t b = a + 1; b < count; ++b) {
      const Gpu &one = inventory.gpus[a], &other = inventory.gpus[b];
      if (known.contains({a, b}) || one.pci == other.pci) continue;  // parts of one chip
      const LinkKind kind = pci_path(files, one.pci, other.pci);
      if (kind != LinkKind::unknown) inventory.links.push_back({a, b, kind, {}, {}});
    }
}

}  // namespace gridctl::probe
