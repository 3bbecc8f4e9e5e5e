// SPDX-License-Identifier: Apache-2.0
#include "base/inventory.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/hardware_json.hpp"

namespace gridctl {

using nlohmann::json;

std::string_view engine_name(EngineKind kind) {
  switch (kind) {
    case EngineKind::docker: return "docker";
    case EngineKind::podman: return "podman";
    case EngineKind::process: return "process";
  }
  return "process";
}

Result<EngineKind> parse_engine(std::string_view name) {
  for (EngineKind kind : {EngineKind::docker, EngineKind::podman, EngineKind::process})
    if (engine_name(kind) == name) return kind;
  return make_error(Code::usage,
                    "'" + std::string(name.substr(0, 40)) + "' is not an engine: docker, podman or process");
}

namespace {
constexpr std::size_t k_gpus_max = 256;    // no machine has more; a longer list is a lie
constexpr std::size_t k_links_max = 4096;  // 90 GPUs, each with each; all of 256 would not fit a frame
constexpr std::size_t k_engines_max = 16;
constexpr std::size_t k_devices_max = 256;  // disks, network ports
constexpr std::size_t k_notes_max = 256;
constexpr std::size_t k_texts_max = 64;

json software_json(const Software& software) {
  const ContainerGpus& gpus = software.container_gpus;
  return {{"libc", software.libc},
          {"cuda_toolkit", software.cuda_toolkit},
          {"hip", software.hip},
          {"level_zero", software.level_zero},
          {"container_gpus",
           {{"toolkit", gpus.toolkit},
            {"docker", gpus.docker ? json(*gpus.docker) : json(nullptr)},
            {"devices", gpus.devices}}}};
}

Software software_of(const JsonFields& in) {
  Software software;
  software.libc = in.text("libc");
  software.cuda_toolkit = in.text("cuda_toolkit");
  software.hip = in.text("hip");
  software.level_zero = in.text("level_zero");
  in.within("container_gpus", [&](const JsonFields& gpus) {
    software.container_gpus = {gpus.text("toolkit"), gpus.maybe_flag("docker"), gpus.texts("devices", k_texts_max)};
  });
  return software;
}

json engine_json(const Engine& engine) {
  return {{"kind", engine_name(engine.kind)},
          {"version", engine.version},
          {"rootless", engine.rootless},
          {"limits_enforced", engine.limits_enforced},
          {"problem", engine.problem}};
}

Engine engine_of(const JsonFields& in) {
  Engine engine;
  engine.kind = parse_engine(in.text("kind")).value_or(EngineKind::process);
  engine.version = in.text("version");
  engine.rootless = in.flag("rootless");
  engine.limits_enforced = in.flag("limits_enforced");
  engine.problem = in.text("problem");
  return engine;
}

json facts_json(const HostFacts& facts) {
  return {{"user", facts.user},
          {"uid", facts.uid},
          {"home_path", facts.home_path},
          {"home_file_system", facts.home_file_system},
          {"home_writable", facts.home_writable},
          {"home_noexec", facts.home_noexec},
          {"home_problem", facts.home_problem},
          {"shm_bytes", facts.shm_bytes},
          {"subuid", facts.subuid},
          {"newuidmap", facts.newuidmap},
          {"cgroup_version", facts.cgroup_version},
          {"cgroup_delegated", facts.cgroup_delegated},
          {"clock_wall_ms", facts.clock_wall_ms}};
}

HostFacts facts_of(const JsonFields& in) {
  HostFacts facts;
  facts.user = in.text("user");
  facts.uid = in.small<std::uint32_t>("uid", UINT32_MAX).value_or(0);
  facts.home_path = in.text("home_path");
  facts.home_file_system = in.text("home_file_system");
  facts.home_writable = in.flag("home_writable");
  facts.home_noexec = in.flag("home_noexec");
  facts.home_problem = in.text("home_problem");
  facts.shm_bytes = in.size("shm_bytes");
  facts.subuid = in.flag("subuid");
  facts.newuidmap = in.flag("newuidmap");
  facts.cgroup_version = in.small<int>("cgroup_version", 9).value_or(0);
  facts.cgroup_delegated = in.flag("cgroup_delegated");
  facts.clock_wall_ms = in.whole("clock_wall_ms", INT64_MIN, INT64_MAX).value_or(0);
  return facts;
}

void read_machine(const JsonFields& in, Inventory& out) {
  constexpr double k_cpus_max = 65536;
  out.machine_id = in.text("machine_id");
  out.boot_id = in.text("boot_id");
  out.hostname = in.text("hostname");
  out.kernel = in.text("kernel");
  out.arch = in.text("arch");
  out.os = in.text("os");
  out.product = in.text("product");
  out.virtualization = in.text("virtualization");
  out.cpu_model = in.text("cpu_model");
  out.cpus = in.real("cpus", 0, k_cpus_max).value_or(0);
  in.within("cpu", [&](const JsonFields& cpu) { out.cpu = cpu_of(cpu); });
  out.memory_bytes = in.size("memory_bytes");
  out.memory_free_bytes = in.maybe_size("memory_free_bytes");
  out.disk_free_bytes = in.size("disk_free_bytes");
  out.disk_total_bytes = in.size("disk_total_bytes");
  in.each("disks", k_devices_max, [&](const JsonFields& disk) { out.disks.push_back(disk_of(disk)); });
  in.each("nics", k_devices_max, [&](const JsonFields& nic) { out.nics.push_back(nic_of(nic)); });
}

Inventory inventory_of(const JsonFields& in) {
  Inventory out;
  out.version = in.small<int>("version", 1'000'000).value_or(1);  // agents before 2 did not say
  read_machine(in, out);
  out.gpu_direct = in.texts("gpu_direct", k_texts_max);
  in.each("engines", k_engines_max, [&](const JsonFields& engine) { out.engines.push_back(engine_of(engine)); });
  in.each("gpus", k_gpus_max, [&](const JsonFields& gpu) { out.gpus.push_back(gpu_of(gpu)); });
  in.each("links", k_links_max, [&](const JsonFields& link) { out.links.push_back(link_of(link, out.gpus.size())); });
  out.nvswitch = in.small<int>("nvswitch", 1000);
  out.cuda = in.text("cuda");
  out.rocm = in.text("rocm");
  out.oneapi = in.text("oneapi");
  in.within("software", [&](const JsonFields& software) { out.software = software_of(software); });
  out.notes = in.texts("notes", k_notes_max);
  out.gaps = gaps_of(in);
  in.within("facts", [&](const JsonFields& facts) { out.facts = facts_of(facts); });
  return out;
}

template <class T>
json list_json(const std::vector<T>& items, json (*one)(const T&)) {
  json out = json::array();
  for (const T& item : items) out.push_back(one(item));
  return out;
}
}  // namespace

std::string to_json(const Inventory& inventory) {
  const json out{
      {"version", inventory.version},
      {"machine_id", inventory.machine_id},
      {"boot_id", inventory.boot_id},
      {"hostname", inventory.hostname},
      {"kernel", inventory.kernel},
      {"arch", inventory.arch},
      {"os", inventory.os},
      {"product", inventory.product},
      {"virtualization", inventory.virtualization},
      {"cpu_model", inventory.cpu_model},
      {"cpus", inventory.cpus},
      {"cpu", cpu_json(inventory.cpu)},
      {"memory_bytes", inventory.memory_bytes},
      {"memory_free_bytes", inventory.memory_free_bytes ? json(*inventory.memory_free_bytes) : json(nullptr)},
      {"disk_free_bytes", inventory.disk_free_bytes},
      {"disk_total_bytes", inventory.disk_total_bytes},
      {"disks", list_json(inventory.disks, disk_json)},
      {"nics", list_json(inventory.nics, nic_json)},
      {"gpu_direct", inventory.gpu_direct},
      {"engines", list_json(inventory.engines, engine_json)},
      {"gpus", list_json(inventory.gpus, gpu_json)},
      {"links", list_json(inventory.links, link_json)},
      {"nvswitch", inventory.nvswitch ? json(*inventory.nvswitch) : json(nullptr)},
      {"cuda", inventory.cuda},
      {"rocm", inventory.rocm},
      {"oneapi", inventory.oneapi},
      {"software", software_json(inventory.software)},
      {"notes", inventory.notes},
      {"gaps", gaps_json(inventory.gaps)},
      {"facts", facts_json(inventory.facts)}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Inventory> parse_inventory(std::string_view text) {
  try {
    const json in = json::parse(text);
    return inventory_of(JsonFields(in));
  } catch (const json::exception& e) {
    return make_error(Code::protocol_violation, std::string("inventory is not what was expected: ") + e.what());
  } catch (const BadField& e) {
    return make_error(Code::protocol_violation, std::string("inventory is not what was expected: ") + e.what());
  }
}

}  // namespace gridctl
