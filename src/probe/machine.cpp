// SPDX-License-Identifier: Apache-2.0
#include "probe/machine.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "probe/cgroup.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::string_view machine_architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv)
  return "riscv64";
#else
  return "unknown";
#endif
}

// Returns the directory or the nearest existing one above it, because only the first job creates the agent's home.
os::Path existing(os::Path path) {
  std::error_code error;
  while (!std::filesystem::exists(path, error) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return path;
}

}  // namespace

std::string parse_cpu_model(std::string_view cpuinfo) {
  for (const std::string_view key : {"model name", "cpu model", "Processor", "Model", "Hardware", "uarch"})
    for (const std::string& line : split_lines(cpuinfo)) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos || trim(std::string_view(line).substr(0, colon)) != key) continue;
      if (std::string value = available(std::string_view(line).substr(colon + 1)); !value.empty()) return value;
      break;
    }
  return {};
}

std::vector<unsigned> parse_cpu_list(std::string_view list) {
  constexpr std::uint64_t k_cpus_max = 65536;  // the kernel's own limit is 8192
  std::vector<unsigned> cpus;
  for (const std::string& range : split(trim(list), ',')) {
    const std::size_t dash = range.find('-');
    const auto first = whole_number(std::string_view(range).substr(0, dash));
    const auto last = dash == std::string::npos ? first : whole_number(std::string_view(range).substr(dash + 1));
    if (!first || !last || *last < *first || *last >= k_cpus_max) return {};
    if (cpus.size() + *last - *first >= k_cpus_max) return {};
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<unsigned>(cpu));
  }
  return cpus;
}

std::string parse_pretty_name(std::string_view os_release) {
  std::string name = line_value(os_release, "PRETTY_NAME=");
  if (name.size() >= 2 && (name.front() == '"' || name.front() == '\'') && name.back() == name.front())
    name = name.substr(1, name.size() - 2);
  return available(name);
}

std::uint64_t parse_memory_total(std::string_view meminfo) {
  return memory_size(line_value(meminfo, "MemTotal:"), "kB").value_or(0);
}

void read_machine(const HostFiles& files, const os::Path& home, Inventory& inventory) {
  const auto note = [&](std::string line) { inventory.notes.push_back(std::move(line)); };
  inventory.machine_id = files.read_line("/etc/machine-id").substr(0, 64);
  inventory.boot_id = files.read_line("/proc/sys/kernel/random/boot_id").substr(0, 64);
  inventory.hostname = files.read_line("/proc/sys/kernel/hostname").substr(0, 255);
  inventory.kernel = available(files.read_line("/proc/sys/kernel/osrelease"));
  inventory.arch = machine_architecture();
  inventory.os =
      parse_pretty_name(files.read("/etc/os-release").value_or(files.read("/usr/lib/os-release").value_or("")));
  inventory.cpu_model = parse_cpu_model(files.read("/proc/cpuinfo").value_or(""));
  if (inventory.cpu_model.empty()) inventory.cpu_model = available(files.read_line("/proc/device-tree/model"));
  if (inventory.machine_id.empty()) note("no /etc/machine-id: only its host key identifies the machine");

  const CgroupLimits limits = cgroup_limits(files);
  const std::size_t allowed =
      parse_cpu_list(line_value(files.read("/proc/self/status").value_or(""), "Cpus_allowed_list:")).size();
  const std::size_t online = parse_cpu_list(files.read_line("/sys/devices/system/cpu/online")).size();
  const std::size_t cpus = allowed != 0 && online != 0 ? std::min(allowed, online) : std::max(allowed, online);
  inventory.cpus = static_cast<double>(cpus);
  if (limits.cpus && *limits.cpus < inventory.cpus) inventory.cpus = std::round(*limits.cpus * 100) / 100;
  if (inventory.cpus == 0) note("the number of usable CPUs could not be read from /proc/self/status");
  inventory.memory_bytes = parse_memory_total(files.read("/proc/meminfo").value_or(""));
  if (limits.memory_bytes && (inventory.memory_bytes == 0 || *limits.memory_bytes < inventory.memory_bytes))
    inventory.memory_bytes = *limits.memory_bytes;
  if (inventory.memory_bytes == 0) note("the memory could not be read from /proc/meminfo");

  std::error_code error;
  const auto space = std::filesystem::space(existing(home), error);
  if (error) {
    note("the disk of " + home.string() + " could not be measured: " + error.message());
  } else {
    inventory.disk_free_bytes = space.available;
    inventory.disk_total_bytes = space.capacity;
  }
}

std::vector<std::string> pci_gpus(const HostFiles& files, std::string_view vendor_id) {
  std::vector<std::string> addresses;
  for (const std::string& address : files.list("/sys/bus/pci/devices")) {
    const std::string directory = "/sys/bus/pci/devices/" + address;
    if (files.read_line(directory + "/vendor") != vendor_id) continue;
    const std::string device_class =
        files.read_line(directory + "/class");  // "0x030000" VGA, 0302 3D, 1200 accelerator
    const bool gpu = device_class.starts_with("0x0300") || device_class.starts_with("0x0302") ||
                     device_class.starts_with("0x0380") || device_class.starts_with("0x1200");
    const bool integrated = address == "0000:00:02.0";  // Intel's graphics inside the processor: no compute host
    if (gpu && !integrated) addresses.push_back(address);
  }
  return addresses;
}

}  // namespace gridctl::probe
