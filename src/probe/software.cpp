// SPDX-License-Identifier: Apache-2.0
#include "probe/software.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

using nlohmann::json;

namespace {

enum Query : std::size_t { getconf, ldd, nvidia_ctk, k_queries };

std::string version_in(std::string_view text) {
  const std::size_t from = text.find_first_of("0123456789");
  if (from == std::string_view::npos) return {};
  text = text.substr(from, 32);
  return std::string(text.substr(0, text.find_first_not_of("0123456789.")));
}

std::string cuda_toolkit(const HostFiles& files) {
  const json version = find_json(files.read("/usr/local/cuda/version.json").value_or(""));
  const std::string text = available(text_of(member(member(version, "cuda"), "version")));
  return text.empty() ? version_in(files.read_line("/usr/local/cuda/version.txt")) : text;
}

std::string hip_version(const HostFiles& files) {
  std::array<std::string, 3> parts;
  constexpr std::array<std::string_view, 3> keys{"HIP_VERSION_MAJOR=", "HIP_VERSION_MINOR=", "HIP_VERSION_PATCH="};
  for (const std::string& line : split_lines(files.read("/opt/rocm/share/hip/version").value_or("")))
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (line.starts_with(keys[i])) parts[i] = version_in(line.substr(keys[i].size()));
  return parts[0].empty() ? std::string() : join(parts, ".");
}

// The loader's link names its version: "libze_loader.so.1.17.39".
std::string level_zero_version(const HostFiles& files) {
  for (const char* directory : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    std::error_code error;
    const os::Path link = files.at(std::string(directory) + "/libze_loader.so.1");
    const os::Path target = std::filesystem::read_symlink(link, error);
    if (!error) return version_in(target.filename().string().substr(std::string_view("libze_loader.so.").size()));
  }
  return {};
}

std::vector<std::string> cdi_kinds(const HostFiles& files) {
  constexpr std::size_t k_specifications_max = 32;
  std::vector<std::string> kinds;
  for (const char* directory : {"/etc/cdi", "/var/run/cdi"})
    for (const std::string& name : files.list(directory)) {
      if (kinds.size() >= k_specifications_max) break;
      const std::string kind = parse_cdi_kind(files.read(std::string(directory) + "/" + name).value_or(""));
      if (!kind.empty() && std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    }
  return kinds;
}

void explain_containers(const std::vector<ToolAnswer>& answers, Inventory& inventory) {
  const ContainerGpus& gpus = inventory.software.container_gpus;
  const bool nvidia = std::ranges::any_of(inventory.gpus, [](const Gpu& gpu) { return gpu.vendor == Vendor::nvidia; });
  const std::string toolkit = "software.container_gpus.toolkit", devices = "software.container_gpus.devices";
  if (!nvidia) add_gap(inventory.gaps, "software.container_gpus.docker", GapReason::not_applicable, "no NVIDIA GPU");
  else add_gap(inventory.gaps, "software.container_gpus.docker", GapReason::no_tool, "no docker answers here");
  if (gpus.toolkit.empty() && !nvidia) add_gap(inventory.gaps, toolkit, GapReason::not_applicable, "no NVIDIA GPU");
  if (gpus.toolkit.empty() && nvidia) {
    const bool hung = answers.size() > nvidia_ctk && answers[nvidia_ctk].found && !answers[nvidia_ctk].answered;
    add_gap(inventory.gaps, toolkit, hung ? GapReason::timed_out : GapReason::no_tool,
            hung ? answers[nvidia_ctk].problem : "nvidia-container-toolkit is not installed");
  }
  if (gpus.devices.empty() && inventory.gpus.empty())
    add_gap(inventory.gaps, devices, GapReason::not_applicable, "no GPU");
  if (gpus.devices.empty())
    add_gap(inventory.gaps, devices, GapReason::not_reported, "no CDI specification in /etc/cdi or /var/run/cdi");
}

std::string container_kind(const HostFiles& files) {
  if (files.exists("/run/.containerenv")) return "podman";
  if (files.exists("/.dockerenv")) return "docker";
  if (files.exists("/var/run/secrets/kubernetes.io")) return "kubernetes";
  return available(files.read_line("/run/systemd/container"));
}

std::string machine_kind(const HostFiles& files, const std::string& maker, const std::string& product) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> makers{{{"QEMU", "kvm"},
                                                                                 {"VMware", "vmware"},
                                                                                 {"innotek", "virtualbox"},
                                                                                 {"Xen", "xen"},
                                                                                 {"Google", "kvm"},
                                                                                 {"DigitalOcean", "kvm"},
                                                                                 {"OpenStack", "kvm"},
                                                                                 {"Parallels", "parallels"}}};
  for (const auto& [name, kind] : makers)
    if (maker.starts_with(name)) return std::string(kind);
  if (maker.starts_with("Microsoft") && product.starts_with("Virtual")) return "hyperv";
  if (maker.starts_with("Amazon")) return product.ends_with(".metal") ? "none" : "kvm";
  for (const std::string& line : split_lines(files.read("/proc/cpuinfo").value_or("")))
    if (line.starts_with("flags")) return line.find(" hypervisor") == std::string::npos ? "none" : "virtual machine";
  return {};
}

}  // namespace

std::vector<ToolCall> software_calls() {
  return {{{"getconf", "GNU_LIBC_VERSION"}}, {{"ldd", "--version"}}, {{"nvidia-ctk", "--version"}}};
}

std::string parse_libc(std::string_view getconf_text, std::string_view ldd_text) {
  const std::string first = available(std::string_view(getconf_text).substr(0, getconf_text.find('\n')));
  if (first.starts_with("glibc ")) return first;
  const std::string said = lower(ldd_text.substr(0, 2000));
  if (said.find("musl") != std::string::npos) {
    const std::size_t at = said.find("version ");
    return "musl" + (at == std::string::npos ? std::string() : " " + version_in(said.substr(at + 8, 32)));
  }
  // "ldd (Debian GLIBC 2.36-9+deb12u10) 2.36"
  const std::string_view line = std::string_view(said).substr(0, said.find('\n'));
  if (!line.starts_with("ldd (")) return {};
  const std::string version = version_in(line.substr(line.rfind(' ') + 1));
  return version.empty() ? std::string() : "glibc " + version;
}

std::string parse_container_toolkit(std::string_view text) {
  const std::size_t at = text.find("version ");
  return at == std::string_view::npos ? std::string() : version_in(text.substr(at + 8, 40));
}

std::string parse_cdi_kind(std::string_view specification) {
  const json in = find_json(specification);
  std::string kind = available(text_of(member(in, "kind")));
  if (kind.empty())
    for (const std::string& line : split_lines(specification))
      if (line.starts_with("kind:")) {
        kind = available(std::string_view(line).substr(5));
        std::erase_if(kind, [](char c) { return c == '"' || c == '\''; });
      }
  const bool plausible = kind.find('/') != std::string::npos && is_plain(kind);
  return plausible ? kind : std::string();
}

void add_software(const HostFiles& files, const std::vector<ToolAnswer>& answers, std::string_view docker_info,
                  Inventory& inventory) {
  Software& software = inventory.software;
  if (answers.size() >= k_queries) {
    software.libc = parse_libc(answers[getconf].out, answers[ldd].out + answers[ldd].err);
    software.container_gpus.toolkit = parse_container_toolkit(answers[nvidia_ctk].out);
  }
  if (software.libc.empty())
    add_gap(inventory.gaps, "software.libc", GapReason::no_tool, "neither getconf nor ldd tells");
  software.cuda_toolkit = cuda_toolkit(files);
  software.hip = hip_version(files);
  software.level_zero = level_zero_version(files);
  software.container_gpus.devices = cdi_kinds(files);
  const json docker = find_json(docker_info);
  if (const json& runtimes = member(docker, "Runtimes"); runtimes.is_object())
    software.container_gpus.docker = runtimes.contains("nvidia");
  explain_containers(answers, inventory);
}

void add_platform(const HostFiles& files, Inventory& inventory) {
  const std::string maker = available(files.read_line("/sys/class/dmi/id/sys_vendor"));
  const std::string product = available(files.read_line("/sys/class/dmi/id/product_name"));
  inventory.product = product.empty() || maker.empty() || product.starts_with(maker) ? product : maker + " " + product;
  if (inventory.product.empty()) inventory.product = available(files.read_line("/proc/device-tree/model"));
  if (inventory.product.empty())
    add_gap(inventory.gaps, "product", GapReason::not_reported, "the firmware names no product");
  inventory.virtualization = container_kind(files);
  if (inventory.virtualization.empty()) inventory.virtualization = machine_kind(files, maker, product);
}

}  // namespace gridctl::probe
