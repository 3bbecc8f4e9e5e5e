// SPDX-License-Identifier: Apache-2.0
#include "probe/health_machine.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/formatted.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/drm_cards.hpp"
#include "probe/machine.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

using wire::GpuHealth;
using wire::GpuProcess;

namespace {

constexpr std::uint64_t k_ticks_per_second = 100;  // of /proc: USER_HZ, the same on every architecture
constexpr std::size_t k_processes_max = 2000;      // looked at; a host with more tells enough
constexpr std::size_t k_files_max = 128;           // descriptors of one process looked at
constexpr std::array<std::string_view, 6> k_gpu_tools{"nvidia-smi", "rocm-smi", "amd-smi",
                                                      "xpu-smi",    "rocminfo", "nvidia-debugdump"};

std::string process_name(const HostFiles& files, const std::string& pid) {
  return files.read_line("/proc/" + pid + "/comm").substr(0, 64);
}

// Maps KFD's number of a GPU to its PCI address, from the topology.
std::map<std::string, std::string> kfd_gpus(const HostFiles& files) {
  std::map<std::string, std::string> found;
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  for (const std::string& node : files.list(nodes)) {
    const std::string id = files.read_line(nodes + "/" + node + "/gpu_id");
    if (id.empty() || id == "0") continue;  // a processor
    const std::string properties = files.read(nodes + "/" + node + "/properties").value_or("");
    const auto location = whole_number(line_value(properties, "location_id "));
    const auto domain = whole_number(line_value(properties, "domain "));
    if (!location || *location > 0xffff || domain.value_or(0) > 0xffff) continue;
    const auto at = static_cast<unsigned>(*location);
    found[id] =
        formatted("%04x:%02x:%02x.%x", static_cast<unsigned>(domain.value_or(0)), at >> 8, at >> 3 & 31, at & 7);
  }
  return found;
}

void add_kfd_processes(const HostFiles& files, std::vector<GpuHealth>& gpus) {
  const std::string processes = "/sys/class/kfd/kfd/proc";
  if (!files.exists(processes)) return;
  for (GpuHealth& gpu : gpus) gpu.processes.emplace();
  const auto by_id = kfd_gpus(files);
  for (const std::string& pid : files.list(processes)) {
    for (const auto& [id, pci] : by_id) {
      const auto bytes = files.read_number(processes + "/" + pid + "/vram_" + id);
      if (!bytes || *bytes == 0) continue;
      for (GpuHealth& gpu : gpus)
        if (gpu.pci == pci && gpu.processes->size() < wire::k_health_processes_max)
          gpu.processes->push_back({static_cast<int>(whole_number(pid).value_or(0)), process_name(files, pid), *bytes,
                                    false, wire::ProcessOwner::foreign});
    }
  }
}

}  // namespace

std::optional<RasCount> parse_ras_count(std::string_view text) {
  const auto uncorrected = whole_number(line_value(text, "ue: ")), corrected = whole_number(line_value(text, "ce: "));
  if (!uncorrected || !corrected) return std::nullopt;
  return RasCount{*uncorrected, *corrected};
}

std::vector<GpuHealth> amd_health(const HostFiles& files) {
  std::vector<GpuHealth> gpus;
  for (const DrmCard& card : drm_cards(files, k_drm_amd)) {
    GpuHealth gpu;
    gpu.pci = card.pci;
    gpu.memory_total = files.read_number(card.path + "/mem_info_vram_total");
    gpu.memory_used = files.read_number(card.path + "/mem_info_vram_used");
    gpu.temperature_c = temperature(files, card);
    for (const std::string& name : files.list(card.path + "/ras")) {
      if (!name.ends_with("_err_count")) continue;
      const auto count = parse_ras_count(files.read(card.path + "/ras/" + name).value_or(""));
      if (!count) continue;
      gpu.ecc_uncorrected = gpu.ecc_uncorrected.value_or(0) + count->uncorrected;
      gpu.ecc_corrected = gpu.ecc_corrected.value_or(0) + count->corrected;
    }
    gpus.push_back(std::move(gpu));
  }
  if (!gpus.empty()) add_kfd_processes(files, gpus);
  return gpus;
}

std::optional<DrmClient> parse_fdinfo(std::string_view text) {
  DrmClient client;
  client.driver = line_value(text, "drm-driver:");
  client.pci = pci_address(line_value(text, "drm-pdev:"));
  if (client.driver.empty() || client.pci.empty()) return std::nullopt;
  for (const std::string& line : split_lines(text))
    for (const std::string_view key : {"drm-total-vram", "drm-total-local", "drm-memory-vram"})
      if (line.starts_with(key))
        client.memory_bytes +=
            memory_size(trim(std::string_view(line).substr(std::min(line.find(':') + 1, line.size()))), "B")
                .value_or(0);
  return client;
}

std::vector<GpuHealth> intel_health(const HostFiles& files) {
  std::vector<GpuHealth> gpus;
  for (const DrmCard& card : drm_cards(files, k_drm_intel)) {
    GpuHealth gpu;
    gpu.pci = card.pci;
    gpu.temperature_c = temperature(files, card);
    gpus.push_back(std::move(gpu));
  }
  if (gpus.empty()) return gpus;
  std::size_t looked = 0;
  for (const std::string& pid : files.list("/proc")) {
    if (!whole_number(pid) || ++looked > k_processes_max) continue;
    std::map<std::string, std::uint64_t> used;  // by address
    std::size_t opened = 0;
    for (const std::string& fd : files.list("/proc/" + pid + "/fdinfo")) {
      if (++opened > k_files_max) break;
      const auto client = parse_fdinfo(files.read("/proc/" + pid + "/fdinfo/" + fd).value_or(""));
      if (client && client->memory_bytes > 0)
        used[client->pci] = std::max(used[client->pci], client->memory_bytes);  // descriptors may share one client
    }
    for (const auto& [pci, bytes] : used)
      for (GpuHealth& gpu : gpus) {
        if (gpu.pci != pci) continue;
        if (!gpu.processes) gpu.processes.emplace();
        if (gpu.processes->size() < wire::k_health_processes_max)
          gpu.processes->push_back({static_cast<int>(whole_number(pid).value_or(0)), process_name(files, pid), bytes,
                                    false, wire::ProcessOwner::foreign});
      }
  }
  return gpus;
}

std::vector<std::string> stuck_tools(const HostFiles& files, Duration since) {
  std::vector<std::string> found;
  const std::string uptime = files.read_line("/proc/uptime");
  const auto up = whole_number(uptime.substr(0, uptime.find('.')));
  if (!up) return found;
  for (const std::string& pid : files.list("/proc")) {
    if (!whole_number(pid)) continue;
    const std::string stat = files.read("/proc/" + pid + "/stat").value_or("");
    const std::size_t open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) continue;
    const std::string name = stat.substr(open + 1, close - open - 1);
    if (std::ranges::find(k_gpu_tools, name) == k_gpu_tools.end()) continue;
    const std::vector<std::string> fields = split(std::string_view(stat).substr(std::min(close + 2, stat.size())), ' ');
    if (fields.size() < 20 || fields[0] != "D") continue;
    const std::uint64_t began = whole_number(fields[19]).value_or(0) / k_ticks_per_second;
    const bool long_ago = *up > began && std::chrono::seconds{*up - began} > since;
    if (long_ago && std::ranges::find(found, name) == found.end()) found.push_back(name);
  }
  return found;
}

void read_load(const HostFiles& files, wire::HealthReport& report) {
  const std::string memory = files.read("/proc/meminfo").value_or("");
  report.memory_bytes = parse_memory_total(memory);
  report.memory_available = memory_size(line_value(memory, "MemAvailable:"), "KiB").value_or(0);
  report.memory_pressure = parse_pressure(files.read("/proc/pressure/memory").value_or(""));
  if (const auto load = leading_number<double>(files.read_line("/proc/loadavg")); load && *load >= 0)
    report.load1 = *load;
  report.cpus = static_cast<unsigned>(parse_cpu_list(files.read_line("/sys/devices/system/cpu/online")).size());
}

std::optional<double> parse_pressure(std::string_view text) {
  for (const std::string& line : split_lines(text)) {
    if (!line.starts_with("some ")) continue;
    const std::size_t at = line.find("avg60=");
    if (at == std::string::npos) return std::nullopt;
    const auto value = leading_number<double>(std::string_view(line).substr(at + 6));
    return value && *value >= 0 && *value <= 100 ? value : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> busy_ticks(const HostFiles& files) {
  const std::vector<std::string> lines = split_lines(files.read("/proc/stat").value_or(""));
  if (lines.empty() || !lines.front().starts_with("cpu ")) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const std::string& word : split(std::string_view(lines.front()).substr(4), ' '))
    if (const auto number = whole_number(word)) numbers.push_back(*number);
  // The order is user nice system idle iowait irq softirq steal; the guests' shares are within user.
  if (numbers.size() < 8) return std::nullopt;
  return numbers[0] + numbers[1] + numbers[2] + numbers[5] + numbers[6] + numbers[7];
}

}  // namespace gridctl::probe
