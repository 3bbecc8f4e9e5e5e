// SPDX-License-Identifier: Apache-2.0
#include "wire/health.hpp"

#include <algorithm>

#include "base/names.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {

constexpr std::size_t k_id_max = 128;              // bytes of an id, a kind, a package
constexpr std::size_t k_words_max = 32;            // throttle reasons
constexpr int k_pid_max = 1 << 30;                 // the kernel's own limit is 2^22
constexpr std::int64_t k_wall_ms_max = 1ll << 48;  // year 10,000 and something
constexpr std::int64_t k_age_ms_max = 1ll << 42;   // a century
constexpr std::size_t k_line_max = k_health_text_max;

constexpr Names<ProcessOwner, ProcessOwner::leftover> k_owners{"foreign", "leased", "leftover"};

}  // namespace

template <class R>
void fields(R& r, Of<R, GpuProcess>& m) {
  r("pid", m.pid, 0, k_pid_max)("name", m.name, k_id_max)("memory_bytes", m.memory_bytes)("draws", m.draws);
  // A word of a newer agent means: not known to be ours.
  r.word_or("owner", m.owner, owner_name, scan(owner_name, ProcessOwner::leftover), ProcessOwner::foreign);
}

template <class R>
void fields(R& r, Of<R, GpuHealth>& m) {
  r("uuid", m.uuid, k_id_max)("pci", m.pci, k_id_max)("partitioned", m.partitioned);
  r.null_or("memory_total", m.memory_total).null_or("memory_used", m.memory_used);
  r.null_or("processes", m.processes, k_health_processes_max)("throttle", m.throttle, k_words_max);
  r.null_or("temperature_c", m.temperature_c, -300, 1000);
  r.null_or("ecc_uncorrected", m.ecc_uncorrected).null_or("ecc_corrected", m.ecc_corrected);
  r.null_or("remap_pending", m.remap_pending).null_or("remap_failed", m.remap_failed);
  r("recovery", m.recovery, k_id_max)("problem", m.problem, k_line_max);
}

template <class R>
void fields(R& r, Of<R, KernelEvent>& m) {
  r("kind", m.kind, k_id_max)("code", m.code, 0, 1'000'000)("pci", m.pci, k_id_max)("text", m.text, k_line_max);
  r("stamp_us", m.stamp_us)("age_ms", m.age_ms, 0, k_age_ms_max)("count", m.count, 1, 1'000'000'000);
}

template <class R>
void fields(R& r, Of<R, DiskHealth>& m) {
  r("free_bytes", m.free_bytes)("total_bytes", m.total_bytes)("read_only", m.read_only);
  r("write_problem", m.write_problem, k_line_max)("write_ms", m.write_ms, 0, k_age_ms_max);
  r("file_system_errors", m.file_system_errors)("drive_problem", m.drive_problem, k_line_max);
}

template <class R>
void fields(R& r, Of<R, HungTool>& m) {
  r("tool", m.tool, k_id_max)("in_kernel", m.in_kernel);
}

template <class R>
void fields(R& r, Of<R, EngineHealth>& m) {
  r.word("kind", m.kind, engine_name, parse_engine)("problem", m.problem, k_line_max);
}

template <class R>
void fields(R& r, Of<R, Package>& m) {
  r("name", m.name, k_id_max)("version", m.version, k_id_max)("packaged", m.packaged);
}

template <class R>
void fields(R& r, Of<R, HealthReport>& m) {
  r("boot_id", m.boot_id, k_id_max)("taken_ns", m.taken_at)("wall_ms", m.wall_ms, 0, k_wall_ms_max);
  r("gpus_ns", m.gpus_at)("gpus", m.gpus, k_health_gpus_max)("hung", m.hung, k_words_max);
  r("events", m.events, k_health_events_max)("log_gap", m.log_gap, k_line_max)("disk", m.disk);
  r("engines", m.engines, k_words_max)("memory_bytes", m.memory_bytes)("memory_available", m.memory_available);
  r.null_or("memory_pressure", m.memory_pressure)("load1", m.load1)("cpus", m.cpus);
  r.null_or("busy_cpus", m.busy_cpus)("leased_cpus", m.leased_cpus)("packages", m.packages, k_health_packages_max);
}

template <class R>
void fields(R& r, Of<R, HealthRequest>& m) {
  r("max_age_ms", m.max_age)("wait_ms", m.wait)("gpus", m.gpus)("packages", m.packages)("known_ns", m.known);
  if constexpr (R::reads) m.wait = std::min(m.wait, k_health_wait_max);
}

template <class R>
void fields(R& r, Of<R, HealthReply>& m) {
  r("host_time_ns", m.host_time)("wall_ms", m.wall_ms, 0, k_wall_ms_max)("under_way", m.under_way);
  r.null_or("report", m.report);
}

std::string_view owner_name(ProcessOwner owner) { return k_owners(owner); }

GRIDCTL_REQUEST(HealthRequest, parse_health_request, "health")
GRIDCTL_REPLY(HealthReply, parse_health_reply, "health reply")
GRIDCTL_REPLY(HealthReport, parse_health_report, "health report")

}  // namespace gridctl::wire
