// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "agent/ranks.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_shared_memory_default = 1ull << 30;  // data loaders pass batches through /dev/shm

std::string vendor_list(const std::vector<Gpu>& gpus, Vendor vendor) {
  std::vector<std::string> ids;
  for (const Gpu& gpu : gpus)
    if (gpu.vendor == vendor)
      ids.push_back(vendor == Vendor::nvidia || !gpu.index ? gpu.uuid : std::to_string(*gpu.index));
  return join(ids, ",");
}

// Returns the /dev/dri nodes of a PCI device.
std::vector<std::string> render_nodes(const std::string& pci) {
  std::vector<std::string> nodes;
  const std::string address = pci.size() > 12 ? pci.substr(pci.size() - 12) : pci;  // "0000:03:00.0"
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/bus/pci/devices/" + lower(address) + "/drm", failed)) {
    const std::string node = "/dev/dri/" + entry.path().filename().string();
    if (os::exists(node)) nodes.push_back(node);
  }
  std::ranges::sort(nodes);
  return nodes;
}

void add_device(std::vector<std::string>& arguments, const std::string& node) {
  arguments.insert(arguments.end(), {"--device", node});
  struct stat info {};
  if (::stat(node.c_str(), &info) == 0) arguments.insert(arguments.end(), {"--group-add", std::to_string(info.st_gid)});
}

}  // namespace

std::vector<std::string> only_render_node(const Path& folder) {
  std::vector<std::string> nodes;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().filename().string().starts_with("renderD")) nodes.push_back(entry.path().string());
  return nodes.size() == 1 ? nodes : std::vector<std::string>{};
}

std::string attempt_name(const JobId& job, Epoch epoch, const Path& agent_home) {
  const std::string mark = home_mark(agent_home);
  return "gridctl-" + job.value + "-e" + std::to_string(epoch.value) + (mark.empty() ? "" : "-" + mark);
}

std::unique_ptr<Engine> make_engine(EngineKind kind) {
  if (kind == EngineKind::process) return make_process_engine();
  return make_container_engine(kind);
}

std::vector<std::string> gpu_arguments(EngineKind kind, const std::vector<Gpu>& gpus) {
  std::vector<std::string> arguments;
  const std::string nvidia = vendor_list(gpus, Vendor::nvidia);
  if (!nvidia.empty() && kind == EngineKind::docker)
    arguments.insert(arguments.end(),
                     {"--gpus", "\"device=" + nvidia + "\""});  // docker splits at commas outside quotes
  bool kfd = false;
  for (const Gpu& gpu : gpus) {
    if (gpu.vendor == Vendor::nvidia) {
      if (kind == EngineKind::podman) arguments.insert(arguments.end(), {"--device", "nvidia.com/gpu=" + gpu.uuid});
      continue;
    }
    if (gpu.vendor == Vendor::amd && !kfd) add_device(arguments, "/dev/kfd"), kfd = true;
    auto nodes = render_nodes(gpu.pci);
    if (nodes.empty()) nodes = only_render_node();
    for (const std::string& node : nodes) add_device(arguments, node);
  }
  return arguments;
}

std::vector<std::pair<std::string, std::string>> gpu_variables(const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto set = [&](const char* name, Vendor vendor) {
    if (const std::string ids = vendor_list(gpus, vendor); !ids.empty()) variables.emplace_back(name, ids);
  };
  set("CUDA_VISIBLE_DEVICES", Vendor::nvidia);
  set("ROCR_VISIBLE_DEVICES", Vendor::amd);
  set("ZE_AFFINITY_MASK", Vendor::intel);
  return variables;
}

std::vector<std::string> container_arguments(EngineKind kind, const wire::AttemptSpec& spec, const LaunchPlan& plan,
                                             const ContainerUser& user) {
  std::vector<std::string> arguments{
      "run", "--detach", "--name", plan.name, "--pull", "never", "--security-opt", "no-new-privileges",
      // Sets no --ulimit: with podman, one of them drops the administrator's others. Init itself forbids core files.
      "--log-driver", "none", "--no-healthcheck", "--label", "gridctl.job=" + spec.job.value, "--label",
      "gridctl.epoch=" + std::to_string(spec.epoch.value), "--label", "gridctl.controller=" + plan.controller.value,
      "--pids-limit", std::to_string(plan.processes_max)};
  const auto add = [&](std::initializer_list<std::string> more) { arguments.insert(arguments.end(), more); };
  add({"--hostname", needs_host_network(spec) ? host_name_in(*spec.gang) : "job"});
  if (needs_host_network(spec)) {
    add({"--network", "host"});
    // Libraries resolve their own host's name, and must not get 127.0.1.1.
    add({"--mount", "type=bind,source=" + (plan.host_run / "hosts").string() + ",target=/etc/hosts,readonly"});
  }
  arguments.insert(arguments.end(), plan.network.begin(), plan.network.end());
  // A writable root is the engine's own layer, which is removed with the container; with podman, root in it is this
  // user.
  if (!spec.root_writable) add({"--read-only"});
  if (!spec.root_writable && std::ranges::find(plan.binds, "/tmp", &Bind::target) == plan.binds.end())
    add({"--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777,size=25%"});
  if (!spec.root_writable || kind == EngineKind::docker) add({"--cap-drop", "all"});
  add({"--user", std::to_string(user.uid) + ":" + std::to_string(user.gid)});  // whatever USER the image names
  // Nothing stays on the host, and a volume of the image is writable even if the root is not.
  if (kind == EngineKind::podman) add({"--image-volume", spec.root_writable ? "ignore" : "tmpfs"});
  if (spec.memory_bytes > 0) {
    const std::string memory = std::to_string(spec.memory_bytes);
    add({"--memory", memory, "--memory-swap", memory, "--shm-size",
         std::to_string(std::max(spec.memory_bytes / 2, 1ul << 20))});
  } else {
    add({"--shm-size", std::to_string(k_shared_memory_default)});
  }
  if (spec.cpus > 0) add({"--cpus", formatted("%.2f", spec.cpus)});
  // NVIDIA's older hooks obey a variable of the image, which shows all GPUs of the machine to a job that leases none.
  if (kind == EngineKind::podman || vendor_list(plan.gpus, Vendor::nvidia).empty()) add({"--env", "NVIDIA_VISIBLE_DEVICES=void"});
  const auto gpus = gpu_arguments(kind, plan.gpus);
  arguments.insert(arguments.end(), gpus.begin(), gpus.end());
  // --mount is used instead of --volume: a colon in a path would split the argument.
  for (const Bind& bind : plan.binds)
    add({"--mount",
         "type=bind,source=" + bind.host.string() + ",target=" + bind.target + (bind.read_only ? ",readonly" : "")});
  add({"--entrypoint", "/gridctl/agent", plan.image, "init"});
  const auto init = to_arguments(plan.init);
  arguments.insert(arguments.end(), init.begin(), init.end());
  return arguments;
}

std::string full_image_name(std::string_view image) {
  const std::size_t slash = image.find('/');
  const std::string_view first = image.substr(0, slash);
  const bool has_registry = slash != std::string_view::npos && (is_one_of(first, {"localhost"}) || first.find_first_of(".:") != std::string_view::npos);
  if (has_registry) return std::string(image);
  return (slash == std::string_view::npos ? "docker.io/library/" : "docker.io/") + std::string(image);
}

std::string loaded_image(std::string_view output) {
  std::string image;
  for (const std::string& line : split_lines(output)) {
    if (!line.starts_with("Loaded image")) continue;
    const auto cut = line.find(": ");
    if (cut != std::string::npos) image = std::string(trim(std::string_view(line).substr(cut + 2)));
  }
  return image;
}

}  // namespace gridctl::agent
