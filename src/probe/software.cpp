// SPDX-License-Identifier: Apache-2.0
#include "probe/software.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ranges>

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

// Parses "#define CUDART_VERSION  12040" into "12.4".
std::string version_of_header(const HostFiles& files, const std::string& include) {
  constexpr std::string_view k_define = "#define CUDART_VERSION";
  const std::string text = files.read(include + "/cuda_runtime_api.h").value_or("");
  const std::size_t at = text.find(k_define);
  if (at == std::string::npos) return {};
  const auto number = whole_number(version_in(std::string_view(text).substr(at + k_define.size(), 32)));
  if (!number || *number < 1000 || *number > 1'000'000) return {};
  return std::to_string(*number / 1000) + "." + std::to_string(*number % 1000 / 10);
}

// Packages may leave out some of these files; the folder's own name is the last fallback.
std::string toolkit_in(const HostFiles& files, const std::string& folder) {
  if (!files.exists(folder)) return {};
  const json version = find_json(files.read(folder + "/version.json").value_or(""));
  std::string text = available(text_of(member(member(version, "cuda"), "version")));
  if (text.empty()) text = version_in(files.read_line(folder + "/version.txt"));
  if (text.empty()) text = version_of_header(files, folder + "/include");
  if (!text.empty()) return text;
  std::error_code error;
  const std::string name = std::filesystem::weakly_canonical(files.at(folder), error).filename().string();
  return !error && name.starts_with("cuda-") ? version_in(name) : std::string();
}

std::string cuda_toolkit(const HostFiles& files) {
  std::vector<std::string> folders{"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"};
  for (const char* parent : {"/usr/local", "/opt"}) {
    std::vector<std::string> names = files.list(parent);
    for (const std::string& name : names | std::views::reverse)
      if (name.starts_with("cuda-")) folders.push_back(std::string(parent) + "/" + name);
  }
  for (const std::string& folder : folders)
    if (std::string text = toolkit_in(files, folder); !text.empty()) return text;
  return version_of_header(files, "/usr/include");
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
  else add_gap(inventory.gaps, "software.container_gpus.docker", GapReason::no_tool, "docker does not answer here");
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
  // Parses "ldd (Debian GLIBC 2.36-9+deb12u10) 2.36".
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
    add_gap(inventory.gaps, "software.libc", GapReason::no_tool, "neither getconf nor ldd reports it");
  software.cuda_toolkit = cuda_toolkit(files);
  software.hip = hip_version(files);
  software.level_zero = level_zero_version(files);
  software.container_gpus.devices = cdi_kinds(files);
  const json docker = find_json(docker_info);
  if (const json& runtimes = member(docker, "Runtimes"); runtimes.is_object())
    software.container_gpus.docker = runtimes.contains("nvidia");
  explain_containers(answers, inventory);
}

}  // namespace gridctl::probe
