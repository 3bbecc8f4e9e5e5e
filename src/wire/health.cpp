// SPDX-License-Identifier: Apache-2.0
#include "wire/health.hpp"

#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {

constexpr std::size_t k_id_max = 128;              // bytes of an id, a kind, a package
constexpr std::size_t k_words_max = 32;            // throttle reasons
constexpr int k_pid_max = 1 << 30;                 // the kernel's own limit is 2^22
constexpr std::int64_t k_wall_ms_max = 1ll << 48;  // year 10,000 and something
constexpr std::int64_t k_age_ms_max = 1ll << 42;   // a century
constexpr std::int64_t k_boot_ns_max = 1ll << 62;

constexpr std::string_view k_owners[] = {"foreign", "leased", "leftover"};

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}
std::optional<std::uint64_t> optional_number(const Fields& fields, const char* key) {
  return fields.has(key) ? std::optional{fields.number(key)} : std::nullopt;
}
std::optional<bool> optional_flag(const Fields& fields, const char* key) {
  return fields.has(key) ? std::optional{fields.flag(key)} : std::nullopt;
}
std::optional<double> optional_real(const Fields& fields, const char* key) {
  return fields.has(key) ? std::optional{fields.real(key)} : std::nullopt;
}
std::string line(const Fields& fields, const char* key) { return fields.text(key, k_health_text_max); }
std::string name(const Fields& fields, const char* key) { return fields.text(key, k_id_max); }
BootTime boot_time(const Fields& fields, const char* key) { return BootTime{fields.integer(key, 0, k_boot_ns_max)}; }

json to_json(const GpuHealth& gpu) {
  json processes = nullptr;
  if (gpu.processes) {
    processes = json::array();
    for (const GpuProcess& process : *gpu.processes)
      processes.push_back({{"pid", process.pid},
                           {"name", process.name},
                           {"memory_bytes", process.memory_bytes},
                           {"draws", process.draws},
                           {"owner", owner_name(process.owner)}});
  }
  return {{"uuid", gpu.uuid},
          {"pci", gpu.pci},
          {"partitioned", gpu.partitioned},
          {"memory_total", optional_json(gpu.memory_total)},
          {"memory_used", optional_json(gpu.memory_used)},
          {"processes", std::move(processes)},
          {"throttle", gpu.throttle},
          {"temperature_c", optional_json(gpu.temperature_c)},
          {"ecc_uncorrected", optional_json(gpu.ecc_uncorrected)},
          {"ecc_corrected", optional_json(gpu.ecc_corrected)},
          {"remap_pending", optional_json(gpu.remap_pending)},
          {"remap_failed", optional_json(gpu.remap_failed)},
          {"recovery", gpu.recovery},
          {"problem", gpu.problem}};
}

ProcessOwner read_owner(const Fields& fields) {
  const std::string word = name(fields, "owner");
  for (std::size_t i = 0; i < std::size(k_owners); ++i)
    if (word == k_owners[i]) return static_cast<ProcessOwner>(i);
  return ProcessOwner::foreign;  // a word of a newer agent: not known to be ours
}
GpuProcess read_process(const Fields& fields) {
  return {static_cast<int>(fields.integer("pid", 0, k_pid_max)), name(fields, "name"), fields.number("memory_bytes"),
          fields.flag("draws"), read_owner(fields)};
}
GpuHealth read_gpu(const Fields& fields) {
  GpuHealth gpu;
  gpu.uuid = name(fields, "uuid");
  gpu.pci = name(fields, "pci");
  gpu.partitioned = fields.flag("partitioned");
  gpu.memory_total = optional_number(fields, "memory_total");
  gpu.memory_used = optional_number(fields, "memory_used");
  if (fields.has("processes")) gpu.processes = fields.list("processes", k_health_processes_max, &read_process);
  gpu.throttle = fields.texts("throttle", k_words_max);
  if (fields.has("temperature_c")) gpu.temperature_c = static_cast<int>(fields.integer("temperature_c", -300, 1000));
  gpu.ecc_uncorrected = optional_number(fields, "ecc_uncorrected");
  gpu.ecc_corrected = optional_number(fields, "ecc_corrected");
  gpu.remap_pending = optional_flag(fields, "remap_pending");
  gpu.remap_failed = optional_flag(fields, "remap_failed");
  gpu.recovery = name(fields, "recovery");
  gpu.problem = line(fields, "problem");
  return gpu;
}

json to_json(const KernelEvent& event) {
  return {{"kind", event.kind},         {"code", event.code},     {"pci", event.pci},    {"text", event.text},
          {"stamp_us", event.stamp_us}, {"age_ms", event.age_ms}, {"count", event.count}};
}
KernelEvent read_event(const Fields& fields) {
  KernelEvent event;
  event.kind = name(fields, "kind");
  event.code = static_cast<int>(fields.integer("code", 0, 1'000'000));
  event.pci = name(fields, "pci");
  event.text = line(fields, "text");
  event.stamp_us = fields.number("stamp_us");
  event.age_ms = fields.integer("age_ms", 0, k_age_ms_max);
  event.count = static_cast<int>(fields.integer("count", 1, 1'000'000'000));
  return event;
}

json to_json(const DiskHealth& disk) {
  return {{"free_bytes", disk.free_bytes},      {"total_bytes", disk.total_bytes},
          {"read_only", disk.read_only},        {"write_problem", disk.write_problem},
          {"write_ms", disk.write_ms},          {"file_system_errors", disk.file_system_errors},
          {"drive_problem", disk.drive_problem}};
}
DiskHealth read_disk(const Fields& fields) {
  return {fields.number("free_bytes"),
          fields.number("total_bytes"),
          fields.flag("read_only"),
          line(fields, "write_problem"),
          fields.integer("write_ms", 0, k_age_ms_max),
          fields.number("file_system_errors"),
          line(fields, "drive_problem")};
}

HungTool read_hung(const Fields& fields) { return {name(fields, "tool"), fields.flag("in_kernel")}; }
EngineHealth read_engine(const Fields& fields) {
  const auto kind = parse_engine(name(fields, "kind"));
  if (!kind) fields.fail("names an unknown engine");
  return {*kind, line(fields, "problem")};
}
Package read_package(const Fields& fields) {
  return {name(fields, "name"), name(fields, "version"), fields.flag("packaged")};
}

json report_json(const HealthReport& report) {
  json gpus = json::array(), hung = json::array(), events = json::array(), engines = json::array(),
       packages = json::array();
  for (const GpuHealth& gpu : report.gpus) gpus.push_back(to_json(gpu));
  for (const HungTool& tool : report.hung) hung.push_back({{"tool", tool.tool}, {"in_kernel", tool.in_kernel}});
  for (const KernelEvent& event : report.events) events.push_back(to_json(event));
  for (const EngineHealth& engine : report.engines)
    engines.push_back({{"kind", engine_name(engine.kind)}, {"problem", engine.problem}});
  for (const Package& package : report.packages)
    packages.push_back({{"name", package.name}, {"version", package.version}, {"packaged", package.packaged}});
  return {{"boot_id", report.boot_id},
          {"taken_ns", report.taken_at.ns},
          {"wall_ms", report.wall_ms},
          {"gpus_ns", report.gpus_at.ns},
          {"gpus", std::move(gpus)},
          {"hung", std::move(hung)},
          {"events", std::move(events)},
          {"log_gap", report.log_gap},
          {"disk", to_json(report.disk)},
          {"engines", std::move(engines)},
          {"memory_bytes", report.memory_bytes},
          {"memory_available", report.memory_available},
          {"memory_pressure", optional_json(report.memory_pressure)},
          {"load1", report.load1},
          {"cpus", report.cpus},
          {"busy_cpus", optional_json(report.busy_cpus)},
          {"leased_cpus", report.leased_cpus},
          {"packages", std::move(packages)}};
}

HealthReport read_report(const Fields& fields) {
  HealthReport report;
  report.boot_id = name(fields, "boot_id");
  report.taken_at = boot_time(fields, "taken_ns");
  report.wall_ms = fields.integer("wall_ms", 0, k_wall_ms_max);
  report.gpus_at = boot_time(fields, "gpus_ns");
  report.gpus = fields.list("gpus", k_health_gpus_max, &read_gpu);
  report.hung = fields.list("hung", k_words_max, &read_hung);
  report.events = fields.list("events", k_health_events_max, &read_event);
  report.log_gap = line(fields, "log_gap");
  report.disk = read_disk(fields.object("disk"));
  report.engines = fields.list("engines", k_words_max, &read_engine);
  report.memory_bytes = fields.number("memory_bytes");
  report.memory_available = fields.number("memory_available");
  report.memory_pressure = optional_real(fields, "memory_pressure");
  report.load1 = fields.real("load1");
  report.cpus = fields.real("cpus");
  report.busy_cpus = optional_real(fields, "busy_cpus");
  report.leased_cpus = fields.real("leased_cpus");
  report.packages = fields.list("packages", k_health_packages_max, &read_package);
  return report;
}

HealthRequest read_request(const Fields& fields) {
  return {fields.duration("max_age_ms"), std::min(fields.duration("wait_ms"), k_health_wait_max), fields.flag("gpus"),
          fields.flag("packages"), boot_time(fields, "known_ns")};
}

HealthReply read_reply(const Fields& fields) {
  HealthReply reply;
  reply.host_time = boot_time(fields, "host_time_ns");
  reply.wall_ms = fields.integer("wall_ms", 0, k_wall_ms_max);
  reply.under_way = fields.flag("under_way");
  if (fields.has("report")) reply.report = read_report(fields.object("report"));
  return reply;
}

}  // namespace

std::string_view owner_name(ProcessOwner owner) { return k_owners[static_cast<std::size_t>(owner)]; }

std::string encode(const HealthRequest& request) {
  return dump({{"op", "health"},
               {"max_age_ms", to_ms(request.max_age)},
               {"wait_ms", to_ms(request.wait)},
               {"gpus", request.gpus},
               {"packages", request.packages},
               {"known_ns", request.known.ns}});
}
std::string encode(const HealthReply& reply) {
  return dump({{"host_time_ns", reply.host_time.ns},
               {"wall_ms", reply.wall_ms},
               {"under_way", reply.under_way},
               {"report", reply.report ? report_json(*reply.report) : json(nullptr)}});
}
std::string encode(const HealthReport& report) { return dump(report_json(report)); }

Result<HealthRequest> parse_health_request(std::string_view text) {
  return parse_request(text, "health", &read_request);
}
Result<HealthReply> parse_health_reply(std::string_view text) {
  return parse_message(text, "health reply", &read_reply);
}
Result<HealthReport> parse_health_report(std::string_view text) {
  return parse_message(text, "health report", &read_report);
}

}  // namespace gridctl::wire
