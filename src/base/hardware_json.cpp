// SPDX-License-Identifier: Apache-2.0
#include "base/hardware_json.hpp"

#include <nlohmann/json.hpp>

namespace gridctl {

using nlohmann::json;

namespace {
constexpr std::int64_t k_mhz_max = 100'000;
constexpr double k_watts_max = 100'000;
constexpr std::int64_t k_celsius_max = 1000;
constexpr double k_bits_max = 1e15;  // per second; NVLink 5 has 7.2e12 in all
constexpr std::int64_t k_number_max = 1'000'000;
constexpr std::size_t k_words_max = 64;
constexpr std::size_t k_numa_max = 1024;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

// A name from a newer agent is what is known to be unknown.
template <class Enum>
Enum named(Result<Enum> (*parse)(std::string_view), const std::string& text, Enum otherwise) {
  return parse(text).value_or(otherwise);
}

void read_state(const JsonFields& in, Gpu& gpu) {
  in.within("clocks", [&](const JsonFields& f) {
    gpu.clocks = {f.small<std::uint32_t>("core_mhz", k_mhz_max), f.small<std::uint32_t>("core_max_mhz", k_mhz_max),
                  f.small<std::uint32_t>("memory_mhz", k_mhz_max), f.small<std::uint32_t>("memory_max_mhz", k_mhz_max)};
  });
  in.within("power", [&](const JsonFields& f) {
    gpu.power = {f.real("draw_watts", 0, k_watts_max), f.real("cap_watts", 0, k_watts_max),
                 f.real("default_watts", 0, k_watts_max), f.real("max_watts", 0, k_watts_max)};
  });
  in.within("heat", [&](const JsonFields& f) {
    gpu.heat = {f.small<int>("now_c", k_celsius_max, -k_celsius_max),
                f.small<int>("slowdown_c", k_celsius_max, -k_celsius_max),
                f.small<int>("shutdown_c", k_celsius_max, -k_celsius_max)};
  });
  in.within("pcie", [&](const JsonFields& f) {
    gpu.pcie = {f.small<int>("generation", 99), f.small<int>("generation_max", 99), f.small<int>("width", 99),
                f.small<int>("width_max", 99)};
  });
  in.within("partition", [&](const JsonFields& f) {
    gpu.partition = {f.maybe_flag("enabled"), f.text("profile"), f.text("parent")};
  });
  in.within("fabric", [&](const JsonFields& f) {
    gpu.fabric = {f.small<int>("active", k_number_max), f.real("bits_per_second", 0, k_bits_max)};
  });
}
}  // namespace

json gaps_json(const std::vector<Gap>& gaps) {
  json out = json::array();
  for (const Gap& gap : gaps)
    out.push_back({{"attribute", gap.attribute}, {"reason", gap_reason_name(gap.reason)}, {"detail", gap.detail}});
  return out;
}

std::vector<Gap> gaps_of(const JsonFields& owner) {
  std::vector<Gap> gaps;
  owner.each("gaps", k_gaps_max, [&](const JsonFields& in) {
    gaps.push_back(
        {in.text("attribute"), named(parse_gap_reason, in.text("reason"), GapReason::not_reported), in.text("detail")});
  });
  return gaps;
}

json gpu_json(const Gpu& gpu) {
  return {
      {"vendor", vendor_name(gpu.vendor)},
      {"name", gpu.name},
      {"uuid", gpu.uuid},
      {"memory_bytes", gpu.memory_bytes},
      {"driver", gpu.driver},
      {"pci", gpu.pci},
      {"index", or_null(gpu.index)},
      {"model", gpu.model},
      {"arch", gpu.arch},
      {"units", or_null(gpu.units)},
      {"memory_bus_bits", or_null(gpu.memory_bus_bits)},
      {"ecc", or_null(gpu.ecc)},
      {"numa_node", or_null(gpu.numa_node)},
      {"throttle", or_null(gpu.throttle)},
      {"clocks",
       {{"core_mhz", or_null(gpu.clocks.core_mhz)},
        {"core_max_mhz", or_null(gpu.clocks.core_max_mhz)},
        {"memory_mhz", or_null(gpu.clocks.memory_mhz)},
        {"memory_max_mhz", or_null(gpu.clocks.memory_max_mhz)}}},
      {"power",
       {{"draw_watts", or_null(gpu.power.draw_watts)},
        {"cap_watts", or_null(gpu.power.cap_watts)},
        {"default_watts", or_null(gpu.power.default_watts)},
        {"max_watts", or_null(gpu.power.max_watts)}}},
      {"heat",
       {{"now_c", or_null(gpu.heat.now_c)},
        {"slowdown_c", or_null(gpu.heat.slowdown_c)},
        {"shutdown_c", or_null(gpu.heat.shutdown_c)}}},
      {"pcie",
       {{"generation", or_null(gpu.pcie.generation)},
        {"generation_max", or_null(gpu.pcie.generation_max)},
        {"width", or_null(gpu.pcie.width)},
        {"width_max", or_null(gpu.pcie.width_max)}}},
      {"partition",
       {{"enabled", or_null(gpu.partition.enabled)},
        {"profile", gpu.partition.profile},
        {"parent", gpu.partition.parent}}},
      {"fabric", {{"active", or_null(gpu.fabric.active)}, {"bits_per_second", or_null(gpu.fabric.bits_per_second)}}},
      {"gaps", gaps_json(gpu.gaps)}};
}

Gpu gpu_of(const JsonFields& in) {
  Gpu gpu;
  gpu.vendor = named(parse_vendor, in.text("vendor"), Vendor::other);
  gpu.name = in.text("name");
  gpu.uuid = in.text("uuid");
  if (gpu.uuid.empty()) throw BadField("a GPU has no uuid");
  gpu.memory_bytes = in.size("memory_bytes");
  gpu.driver = in.text("driver");
  gpu.pci = in.text("pci");
  gpu.index = in.small<int>("index", k_number_max);
  gpu.model = in.text("model");
  gpu.arch = in.text("arch");
  gpu.units = in.small<std::uint32_t>("units", k_number_max);
  gpu.memory_bus_bits = in.small<std::uint32_t>("memory_bus_bits", k_number_max);
  gpu.ecc = in.maybe_flag("ecc");
  gpu.numa_node = in.small<int>("numa_node", k_number_max);
  if (in.has("throttle")) gpu.throttle = in.texts("throttle", k_words_max);
  read_state(in, gpu);
  gpu.gaps = gaps_of(in);
  return gpu;
}

json link_json(const GpuLink& link) {
  return {{"a", link.a},
          {"b", link.b},
          {"kind", link_kind_name(link.kind)},
          {"lanes", or_null(link.lanes)},
          {"bits_per_second", or_null(link.bits_per_second)}};
}

GpuLink link_of(const JsonFields& in, std::size_t gpus) {
  GpuLink link;
  const auto last = static_cast<std::int64_t>(gpus) - 1;
  link.a = in.small<std::uint32_t>("a", last).value_or(0);
  link.b = in.small<std::uint32_t>("b", last).value_or(0);
  if (link.a >= link.b) throw BadField("a link does not join two GPUs");
  link.kind = named(parse_link_kind, in.text("kind"), LinkKind::unknown);
  link.lanes = in.small<int>("lanes", k_number_max);
  link.bits_per_second = in.real("bits_per_second", 0, k_bits_max);
  return link;
}

json nic_json(const Nic& nic) {
  return {{"device", nic.device},
          {"interface", nic.interface},
          {"port", nic.port},
          {"kind", nic_kind_name(nic.kind)},
          {"up", nic.up},
          {"bits_per_second", or_null(nic.bits_per_second)},
          {"model", nic.model},
          {"pci", nic.pci},
          {"numa_node", or_null(nic.numa_node)}};
}

Nic nic_of(const JsonFields& in) {
  Nic nic;
  nic.device = in.text("device");
  nic.interface = in.text("interface");
  nic.port = in.small<int>("port", k_number_max).value_or(1);
  nic.kind = named(parse_nic_kind, in.text("kind"), NicKind::other);
  nic.up = in.flag("up");
  nic.bits_per_second = in.real("bits_per_second", 0, k_bits_max);
  nic.model = in.text("model");
  nic.pci = in.text("pci");
  nic.numa_node = in.small<int>("numa_node", k_number_max);
  return nic;
}

json disk_json(const Disk& disk) {
  return {{"mount", disk.mount},
          {"file_system", disk.file_system},
          {"source", disk.source},
          {"kind", disk_kind_name(disk.kind)},
          {"total_bytes", disk.total_bytes},
          {"free_bytes", disk.free_bytes},
          {"read_only", disk.read_only}};
}

Disk disk_of(const JsonFields& in) {
  Disk disk;
  disk.mount = in.text("mount");
  disk.file_system = in.text("file_system");
  disk.source = in.text("source");
  disk.kind = named(parse_disk_kind, in.text("kind"), DiskKind::unknown);
  disk.total_bytes = in.size("total_bytes");
  disk.free_bytes = in.size("free_bytes");
  disk.read_only = in.flag("read_only");
  return disk;
}

json cpu_json(const CpuLayout& cpu) {
  json out{{"sockets", or_null(cpu.sockets)},
           {"cores", or_null(cpu.cores)},
           {"threads", or_null(cpu.threads)},
           {"max_mhz", or_null(cpu.max_mhz)},
           {"features", cpu.features}};
  out["numa"] = json::array();
  for (const NumaNode& node : cpu.numa)
    out["numa"].push_back({{"id", node.id}, {"cpus", node.cpus}, {"memory_bytes", node.memory_bytes}});
  return out;
}

CpuLayout cpu_of(const JsonFields& in) {
  CpuLayout cpu;
  cpu.sockets = in.small<int>("sockets", k_number_max);
  cpu.cores = in.small<int>("cores", k_number_max);
  cpu.threads = in.small<int>("threads", k_number_max);
  cpu.max_mhz = in.small<std::uint32_t>("max_mhz", k_mhz_max);
  cpu.features = in.texts("features", k_words_max);
  in.each("numa", k_numa_max, [&](const JsonFields& node) {
    cpu.numa.push_back({node.small<int>("id", k_number_max).value_or(0), node.text("cpus"), node.size("memory_bytes")});
  });
  return cpu;
}

}  // namespace gridctl
