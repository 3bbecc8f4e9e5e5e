// SPDX-License-Identifier: Apache-2.0
#include "base/inventory.hpp"

#include <nlohmann/json.hpp>

namespace gridctl {

using nlohmann::json;

std::string_view vendor_name(Vendor vendor) {
  switch (vendor) {
    case Vendor::nvidia: return "nvidia";
    case Vendor::amd: return "amd";
    case Vendor::intel: return "intel";
  }
  return "nvidia";
}

Result<Vendor> parse_vendor(std::string_view name) {
  for (Vendor vendor : {Vendor::nvidia, Vendor::amd, Vendor::intel})
    if (vendor_name(vendor) == name) return vendor;
  return make_error(Code::usage, "'" + std::string(name.substr(0, 40)) + "' is not a GPU vendor: nvidia, amd or intel");
}

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
constexpr std::size_t k_gpus_max = 256;  // no machine has more; a longer list is a lie
constexpr std::size_t k_engines_max = 16;

json gpu_json(const Gpu& gpu) {
  json out{{"vendor", vendor_name(gpu.vendor)}, {"name", gpu.name},     {"uuid", gpu.uuid},
           {"memory_bytes", gpu.memory_bytes},  {"driver", gpu.driver}, {"pci", gpu.pci}};
  out["index"] = gpu.index ? json(*gpu.index) : json(nullptr);
  return out;
}

Gpu gpu_of(const json& in) {
  Gpu gpu;
  gpu.vendor = parse_vendor(in.at("vendor").get<std::string>()).value_or(Vendor::nvidia);
  gpu.name = in.at("name").get<std::string>();
  gpu.uuid = in.at("uuid").get<std::string>();
  gpu.memory_bytes = in.at("memory_bytes").get<std::uint64_t>();
  gpu.driver = in.value("driver", "");
  gpu.pci = in.value("pci", "");
  if (in.contains("index") && in["index"].is_number_integer()) gpu.index = in["index"].get<int>();
  return gpu;
}

json engine_json(const Engine& engine) {
  return {{"kind", engine_name(engine.kind)},
          {"version", engine.version},
          {"rootless", engine.rootless},
          {"limits_enforced", engine.limits_enforced},
          {"problem", engine.problem}};
}

Engine engine_of(const json& in) {
  Engine engine;
  engine.kind = parse_engine(in.at("kind").get<std::string>()).value_or(EngineKind::process);
  engine.version = in.value("version", "");
  engine.rootless = in.value("rootless", false);
  engine.limits_enforced = in.value("limits_enforced", false);
  engine.problem = in.value("problem", "");
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

HostFacts facts_of(const json& in) {
  HostFacts facts;
  facts.user = in.value("user", "");
  facts.uid = in.value("uid", std::uint32_t{0});
  facts.home_path = in.value("home_path", "");
  facts.home_file_system = in.value("home_file_system", "");
  facts.home_writable = in.value("home_writable", false);
  facts.home_noexec = in.value("home_noexec", false);
  facts.home_problem = in.value("home_problem", "");
  facts.shm_bytes = in.value("shm_bytes", std::uint64_t{0});
  facts.subuid = in.value("subuid", false);
  facts.newuidmap = in.value("newuidmap", false);
  facts.cgroup_version = in.value("cgroup_version", 0);
  facts.cgroup_delegated = in.value("cgroup_delegated", false);
  facts.clock_wall_ms = in.value("clock_wall_ms", std::int64_t{0});
  return facts;
}

Inventory inventory_of(const json& in) {
  Inventory out;
  out.machine_id = in.value("machine_id", "");
  out.boot_id = in.value("boot_id", "");
  out.hostname = in.value("hostname", "");
  out.kernel = in.value("kernel", "");
  out.arch = in.value("arch", "");
  out.os = in.value("os", "");
  out.cpu_model = in.value("cpu_model", "");
  out.cpus = in.value("cpus", 0.0);
  out.memory_bytes = in.value("memory_bytes", std::uint64_t{0});
  out.disk_free_bytes = in.value("disk_free_bytes", std::uint64_t{0});
  out.disk_total_bytes = in.value("disk_total_bytes", std::uint64_t{0});
  out.cuda = in.value("cuda", "");
  out.rocm = in.value("rocm", "");
  out.oneapi = in.value("oneapi", "");
  for (const json& engine : in.value("engines", json::array())) out.engines.push_back(engine_of(engine));
  for (const json& gpu : in.value("gpus", json::array())) out.gpus.push_back(gpu_of(gpu));
  for (const json& note : in.value("notes", json::array())) out.notes.push_back(note.get<std::string>());
  out.facts = facts_of(in.value("facts", json::object()));
  return out;
}
}  // namespace

std::string to_json(const Inventory& inventory) {
  json out{{"machine_id", inventory.machine_id},
           {"boot_id", inventory.boot_id},
           {"hostname", inventory.hostname},
           {"kernel", inventory.kernel},
           {"arch", inventory.arch},
           {"os", inventory.os},
           {"cpu_model", inventory.cpu_model},
           {"cpus", inventory.cpus},
           {"memory_bytes", inventory.memory_bytes},
           {"disk_free_bytes", inventory.disk_free_bytes},
           {"disk_total_bytes", inventory.disk_total_bytes},
           {"cuda", inventory.cuda},
           {"rocm", inventory.rocm},
           {"oneapi", inventory.oneapi},
           {"notes", inventory.notes},
           {"facts", facts_json(inventory.facts)}};
  out["engines"] = json::array();
  for (const Engine& engine : inventory.engines) out["engines"].push_back(engine_json(engine));
  out["gpus"] = json::array();
  for (const Gpu& gpu : inventory.gpus) out["gpus"].push_back(gpu_json(gpu));
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Inventory> parse_inventory(std::string_view text) {
  try {
    const json in = json::parse(text);
    if (in.value("gpus", json::array()).size() > k_gpus_max ||
        in.value("engines", json::array()).size() > k_engines_max)
      return make_error(Code::protocol_violation, "inventory lists more GPUs or engines than any machine has");
    return inventory_of(in);
  } catch (const json::exception& e) {
    return make_error(Code::protocol_violation, std::string("inventory is not what was expected: ") + e.what());
  }
}

}  // namespace gridctl
