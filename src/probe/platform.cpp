// SPDX-License-Identifier: Apache-2.0
// Determines the kind of machine: container, virtual machine or neither. Images for virtual machines are often made
// from container images and keep their marks, so a mark counts only if the namespaces are not the machine's first ones.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "probe/software.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

// The kernel gives a machine's first namespaces these numbers since Linux 3.8; every other namespace has another one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> k_first_namespaces{
    {{"pid", "pid:[4026531836]"}, {"uts", "uts:[4026531838]"}, {"ipc", "ipc:[4026531839]"}}};

bool in_first_namespaces(const HostFiles& files) {
  return std::ranges::all_of(k_first_namespaces, [&](const auto& one) {
    std::error_code error;
    const os::Path target = std::filesystem::read_symlink(files.at("/proc/self/ns/" + std::string(one.first)), error);
    return !error && target.string() == one.second;
  });
}

bool text_has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// gVisor answers in place of the kernel: always the same version, built on the same day.
bool is_gvisor(const HostFiles& files) {
  const std::string version = files.read_line("/proc/version");
  return text_has(version, "gVisor") || version.starts_with("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016");
}

std::string container_kind(const HostFiles& files) {
  if (is_gvisor(files)) return "gvisor";
  if (in_first_namespaces(files)) return {};
  if (files.exists("/run/.containerenv")) return "podman";
  if (files.exists("/.dockerenv")) return "docker";
  if (files.exists("/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (std::string said = available(files.read_line("/run/systemd/container")); !said.empty()) return said;
  const bool lxc = files.exists("/dev/lxd/sock") || files.exists("/dev/.lxc") ||
                   text_has(files.read("/proc/self/mountinfo").value_or(""), " lxcfs ") ||
                   text_has(files.read("/proc/self/cgroup").value_or(""), "/lxc");
  return lxc ? "lxc" : "";
}

std::string machine_of_maker(const std::string& maker, const std::string& product) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> makers{{
      {"QEMU", "kvm"}, {"VMware", "vmware"}, {"innotek", "virtualbox"}, {"Xen", "xen"}, {"Google", "kvm"},
      {"DigitalOcean", "kvm"}, {"OpenStack", "kvm"}, {"Cloud Hypervisor", "kvm"}, {"Red Hat", "kvm"},
      {"Parallels", "parallels"}}};
  for (const auto& [name, kind] : makers)
    if (maker.starts_with(name)) return std::string(kind);
  if (maker.starts_with("Microsoft") && product.starts_with("Virtual")) return "hyperv";
  if (maker.starts_with("Amazon")) return product.ends_with(".metal") ? "none" : "kvm";
  return {};
}

// Recognises machines without firmware that names a maker: WSL2, Firecracker and other small ones.
std::string machine_of_kernel(const HostFiles& files) {
  const std::string release = lower(files.read_line("/proc/sys/kernel/osrelease"));
  if (text_has(release, "microsoft")) return "wsl";
  const std::string line = files.read_line("/proc/cmdline");
  const std::string clocks = files.read_line("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  const bool kvm = text_has(clocks, "kvm-clock");
  if (text_has(line, "firecracker") || text_has(release, "firecracker") || text_has(release, "-fc-") ||
      (kvm && text_has(line, "virtio_mmio.device=")))
    return "firecracker";
  if (kvm) return "kvm";
  if (text_has(clocks, "hyperv_clocksource")) return "hyperv";
  return available(files.read_line("/sys/hypervisor/type"));
}

std::string machine_kind(const HostFiles& files, const std::string& maker, const std::string& product) {
  if (std::string kind = machine_of_maker(maker, product); !kind.empty()) return kind;
  if (std::string kind = machine_of_kernel(files); !kind.empty()) return kind;
  const std::string flags = line_value(files.read("/proc/cpuinfo").value_or(""), "flags");
  if (flags.empty()) return {};
  return text_has(flags, " hypervisor") ? "virtual machine" : "none";
}

}  // namespace

void add_platform(const HostFiles& files, Inventory& inventory) {
  const std::string maker = available(files.read_line("/sys/class/dmi/id/sys_vendor"));
  const std::string product = available(files.read_line("/sys/class/dmi/id/product_name"));
  inventory.product = product.empty() || maker.empty() || product.starts_with(maker) ? product : maker + " " + product;
  if (inventory.product.empty()) inventory.product = available(files.read_line("/proc/device-tree/model"));
  if (inventory.product.empty())
    add_gap(inventory.gaps, "product", GapReason::not_reported, "the firmware does not name a product");
  inventory.virtualization = container_kind(files);
  if (inventory.virtualization.empty()) inventory.virtualization = machine_kind(files, maker, product);
}

}  // namespace gridctl::probe
