// SPDX-License-Identifier: Apache-2.0
#include "probe/nics.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/pci.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::size_t k_nics_max = 64;  // a DGX has 12; more are virtual functions

// Returns the target of the "device" link of a class entry: the PCI address, or empty for a virtual device.
std::string pci_of(const HostFiles& files, const std::string& entry) {
  std::error_code error;
  const os::Path target = std::filesystem::read_symlink(files.at(entry + "/device"), error);
  return error ? std::string() : sysfs_address(target.filename().string());
}

std::string ids_of(const HostFiles& files, const std::string& entry) {
  const auto id = [&](const char* name) {
    const std::string text = files.read_line(entry + "/device/" + name);
    return text.starts_with("0x") && text.size() == 6 ? text.substr(2) : std::string();
  };
  const std::string vendor = id("vendor"), device = id("device");
  return vendor.empty() || device.empty() ? std::string() : vendor + ":" + device;
}

void fill_place(const HostFiles& files, const std::string& entry, Nic& nic) {
  nic.pci = pci_of(files, entry);
  nic.model = available(files.read_line(entry + "/hca_type"));  // "MT4129", where the driver says it
  if (nic.model.empty()) nic.model = ids_of(files, entry);
  nic.numa_node = pci_numa_node(files, nic.pci);
}

void add_rdma(const HostFiles& files, std::vector<Nic>& nics) {
  for (const std::string& device : files.list("/sys/class/infiniband")) {
    const std::string entry = "/sys/class/infiniband/" + device;
    for (const std::string& port : files.list(entry + "/ports")) {
      const auto number = whole_number(port);
      if (!number || *number > 255 || nics.size() >= k_nics_max) continue;
      const std::string at = entry + "/ports/" + port;
      Nic nic;
      nic.device = available(device);
      nic.port = static_cast<int>(*number);
      fill_place(files, entry, nic);
      const std::string layer = lower(files.read_line(at + "/link_layer"));
      nic.kind = layer == "infiniband" ? NicKind::infiniband : layer == "ethernet" ? NicKind::roce : NicKind::other;
      nic.up = files.read_line(at + "/state").find("ACTIVE") != std::string::npos;  // "4: ACTIVE"
      nic.bits_per_second = infiniband_rate(files.read_line(at + "/rate"));
      nic.interface = available(files.read_line(at + "/gid_attrs/ndevs/0"));
      if (nic.interface.empty())
        if (const auto names = files.list(entry + "/device/net"); !names.empty()) nic.interface = available(names[0]);
      nics.push_back(std::move(nic));
    }
  }
}

void add_ethernet(const HostFiles& files, std::vector<Nic>& nics) {
  for (const std::string& name : files.list("/sys/class/net")) {
    const std::string entry = "/sys/class/net/" + name;
    const bool known = std::ranges::any_of(nics, [&](const Nic& nic) { return nic.interface == name; });
    if (known || nics.size() >= k_nics_max || !files.exists(entry + "/device")) continue;
    Nic nic;
    nic.interface = available(name);
    fill_place(files, entry, nic);
    const bool infiniband = files.read_line(entry + "/type") == "32";  // ARPHRD_INFINIBAND
    nic.kind = infiniband ? NicKind::infiniband : NicKind::ethernet;
    nic.up = files.read_line(entry + "/operstate") == "up";
    const auto megabits = files.read_number(entry + "/speed");  // "-1" when unknown, as for most virtual cards
    if (megabits && *megabits > 0 && *megabits < 10'000'000) nic.bits_per_second = static_cast<double>(*megabits) * 1e6;
    nics.push_back(std::move(nic));
  }
}

bool has_module(const HostFiles& files, std::string_view name) {
  return files.exists("/sys/module/" + std::string(name));
}

std::vector<std::string> direct_ways(const HostFiles& files, const Inventory& inventory) {
  std::vector<std::string> ways;
  if (has_module(files, "nvidia_peermem") || has_module(files, "nv_peer_mem") || has_module(files, "ib_peer_mem"))
    ways.emplace_back("peermem");
  // dma-buf needs the open kernel modules on NVIDIA's side; amdgpu and the Intel drivers export it always.
  const bool open =
      files.read("/proc/driver/nvidia/version").value_or("").find("Open Kernel Module") != std::string::npos;
  const bool exports = std::ranges::any_of(inventory.gpus, [](const Gpu& gpu) { return gpu.vendor != Vendor::nvidia; });
  if (has_module(files, "ib_core") && (open || exports)) ways.emplace_back("dmabuf");
  return ways;
}

}  // namespace

std::optional<double> infiniband_rate(std::string_view text) {
  text = trim(text);
  const auto rate = take_number<double>(text);
  if (!rate || !trim(text).starts_with("Gb/sec") || *rate <= 0 || *rate > 100'000) return std::nullopt;
  return *rate * 1e9;
}

std::vector<Nic> read_nics(const HostFiles& files) {
  std::vector<Nic> nics;
  add_rdma(files, nics);
  add_ethernet(files, nics);
  return nics;
}

void add_nics(const HostFiles& files, Inventory& inventory) {
  inventory.nics = read_nics(files);
  if (inventory.nics.empty()) {
    if (!files.exists("/sys/class/net")) add_gap(inventory.gaps, "nics", GapReason::denied, "/sys/class/net is hidden");
    else add_gap(inventory.gaps, "nics", GapReason::not_applicable, "only virtual interfaces, as in containers");
  }
  const bool rdma = std::ranges::any_of(inventory.nics, [](const Nic& nic) { return !nic.device.empty(); });
  if (inventory.gpus.empty()) return add_gap(inventory.gaps, "gpu_direct", GapReason::not_applicable, "no GPU");
  if (!rdma) return add_gap(inventory.gaps, "gpu_direct", GapReason::not_applicable, "no RDMA device");
  inventory.gpu_direct = direct_ways(files, inventory);
  if (inventory.gpu_direct.empty())
    add_gap(inventory.gaps, "gpu_direct", GapReason::no_driver, "neither nvidia_peermem nor dma-buf is available");
}

}  // namespace gridctl::probe
