// SPDX-License-Identifier: Apache-2.0
#include "probe/cpu.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "probe/machine.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::size_t k_numa_nodes_max = 256;
constexpr std::array<std::string_view, 13> k_features{"avx",      "avx2",     "fma",      "avx512f", "avx512_bf16",
                                                      "avx_vnni", "amx_bf16", "amx_tile", "asimd",   "asimdhp",
                                                      "sve",      "sve2",     "bf16"};

void read_topology(const HostFiles& files, CpuLayout& cpu) {
  const std::vector<unsigned> online = parse_cpu_list(files.read_line("/sys/devices/system/cpu/online"));
  if (online.empty()) return;
  cpu.threads = static_cast<int>(online.size());
  std::set<std::uint64_t> sockets;
  std::set<std::pair<std::uint64_t, std::uint64_t>> cores;
  for (const unsigned number : online) {
    const std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/";
    const auto socket = files.read_number(at + "physical_package_id");
    const auto core = files.read_number(at + "core_id");
    if (!socket || !core) return;  // some ARM machines say -1
    sockets.insert(*socket);
    cores.insert({*socket, *core});
  }
  cpu.sockets = static_cast<int>(sockets.size());
  cpu.cores = static_cast<int>(cores.size());
}

void read_numa(const HostFiles& files, CpuLayout& cpu) {
  for (const std::string& name : files.list("/sys/devices/system/node")) {
    const auto id = name.starts_with("node") ? whole_number(std::string_view(name).substr(4)) : std::nullopt;
    if (!id || *id > 4096 || cpu.numa.size() >= k_numa_nodes_max) continue;
    const std::string at = "/sys/devices/system/node/" + name;
    NumaNode node{static_cast<int>(*id), available(files.read_line(at + "/cpulist")), 0};
    for (const std::string& line : split_lines(files.read(at + "/meminfo").value_or(""))) {
      const std::size_t key = line.find("MemTotal:");  // "Node 0 MemTotal:  1056495636 kB"
      if (key != std::string::npos) node.memory_bytes = memory_size(line.substr(key + 9), "kB").value_or(0);
    }
    cpu.numa.push_back(std::move(node));
  }
  std::ranges::sort(cpu.numa, {}, &NumaNode::id);
}

}  // namespace

std::vector<std::string> parse_cpu_features(std::string_view cpuinfo) {
  std::vector<std::string> found;
  for (const std::string& line : split_lines(cpuinfo)) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    const std::vector<std::string> words = split(line.substr(line.find(':') + 1), ' ');
    for (const std::string_view feature : k_features)
      if (std::ranges::find(words, feature) != words.end()) found.emplace_back(feature);
    break;
  }
  return found;
}

CpuLayout read_cpu(const HostFiles& files) {
  CpuLayout cpu;
  read_topology(files, cpu);
  read_numa(files, cpu);
  const std::string cpuinfo = files.read("/proc/cpuinfo").value_or("");
  cpu.features = parse_cpu_features(cpuinfo);
  const auto khz = files.read_number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  if (khz && *khz >= 100'000 && *khz < 100'000'000) cpu.max_mhz = static_cast<std::uint32_t>(*khz / 1000);
  return cpu;
}

void add_cpu(const HostFiles& files, Inventory& inventory) {
  inventory.cpu = read_cpu(files);
  if (!inventory.cpu.max_mhz)
    add_gap(inventory.gaps, "cpu.max_mhz", GapReason::not_reported, "no cpufreq, as in most virtual machines");
  for (const char* attribute : {"cpu.sockets", "cpu.cores"})
    if (!inventory.cpu.sockets)
      add_gap(inventory.gaps, attribute, GapReason::not_reported, "the kernel shows no processor topology");
  if (inventory.cpu.numa.empty())
    add_gap(inventory.gaps, "cpu.numa", GapReason::not_supported, "the kernel was built without NUMA");
  if (inventory.cpu.features.empty())
    add_gap(inventory.gaps, "cpu.features", GapReason::not_reported, "/proc/cpuinfo lists none of the known features");
  const std::string left = line_value(files.read("/proc/meminfo").value_or(""), "MemAvailable:");
  inventory.memory_free_bytes = memory_size(left, "kB");
  if (inventory.memory_free_bytes && inventory.memory_bytes != 0)  // a control group may allow less than is free
    inventory.memory_free_bytes = std::min(*inventory.memory_free_bytes, inventory.memory_bytes);
}

}  // namespace gridctl::probe
