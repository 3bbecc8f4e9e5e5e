// SPDX-License-Identifier: Apache-2.0
// Converts the report between a value and JSON.
#include <algorithm>

#include "base/record.hpp"
#include "control/measure/bench.hpp"

namespace gridctl::control {
namespace {

constexpr std::string_view k_kind = "bench";      // of the host report and the host's events
constexpr std::size_t k_report_max = 900 * 1024;  // bytes: below what the registry takes

std::string why(const GpuBench& gpu) {
  if (!gpu.verdict.cause.empty()) return gpu.verdict.cause;
  return gpu.verdict.findings.empty() ? "" : gpu.verdict.findings.front().text;
}
std::string name_of(const GpuBench& gpu) { return gpu.gpu.model.empty() ? gpu.gpu.name : gpu.gpu.model; }

}  // namespace

}  // namespace gridctl::control

namespace gridctl::sched {

constexpr auto k_name = [](VerdictKind kind) { return verdict_name(kind); };

template <class R>
void fields(R& r, Of<R, GpuFinding>& m) {
  r.word_or("verdict", m.kind, k_name, parse_verdict, VerdictKind::suspect)("what", m.what)("text", m.text);
}

template <class R>
void fields(R& r, Of<R, GpuVerdict>& m) {
  r.word_or("verdict", m.kind, k_name, parse_verdict, VerdictKind::suspect)("cause", m.cause);
  r("findings", m.findings)("notes", m.notes);
}

template <class R>
void fields(R& r, Of<R, Trend>& m) {
  r("last", m.last)("baseline", m.baseline);
}

}  // namespace gridctl::sched

namespace gridctl::control {

template <class R>
void fields(R& r, Of<R, BenchTranscript>& m) {
  r("test", m.test).stamp("at", m.at)("seed", m.seed)("after", m.after)("sizes", m.sizes);
  r("answer_sha256", m.answer_sha256)("parts", m.parts)("words", m.words)("seconds_here", m.seconds_here);
  r("seconds_there", m.seconds_there)("outcome", m.outcome);
}

template <class R>
void fields(R& r, Of<R, GpuBench>& m) {
  fields(r, m.verdict);
  r("uuid", m.gpu.uuid).word_or("vendor", m.gpu.vendor, vendor_name, parse_vendor, Vendor::nvidia);
  r("name", m.gpu.name)("model", m.gpu.model)("memory_bytes", m.gpu.memory_bytes)("backend", m.backend);
  r("figures", m.figures)("trends", m.trends)("transcripts", m.transcripts);
}

template <class R>
void fields(R& r, Of<R, BenchReport>& m) {
  r.stamp("at", m.at)("quick", m.quick)("round_trip_ms", m.round_trip_ms)("host", m.host)("gpus", m.gpus);
  r("problems", m.problems);
  if constexpr (!R::reads) r("verdict", std::string(sched::verdict_name(m.verdict())));
}

sched::VerdictKind BenchReport::verdict() const {
  sched::VerdictKind worst = sched::VerdictKind::ok;
  for (const GpuBench& gpu : gpus) worst = std::max(worst, gpu.verdict.kind);
  return worst;
}

std::string BenchReport::mismatch() const {
  for (const GpuBench& gpu : gpus)
    if (gpu.verdict.kind == sched::VerdictKind::mismatch) return name_of(gpu) + ": " + why(gpu);
  return "";
}

std::set<std::string> BenchReport::unverified() const {
  std::set<std::string> found;
  for (const GpuBench& gpu : gpus)
    if (std::ranges::any_of(gpu.verdict.findings, [](const sched::GpuFinding& one) {
          return one.kind == sched::VerdictKind::unverified;
        }))
      found.insert(gpu.gpu.uuid);
  return found;
}

std::string BenchReport::summary() const {
  if (gpus.empty()) return "no GPU";
  const auto worst = std::max_element(
      gpus.begin(), gpus.end(), [](const GpuBench& a, const GpuBench& b) { return a.verdict.kind < b.verdict.kind; });
  std::string text(sched::verdict_name(worst->verdict.kind));
  if (worst->verdict.kind != sched::VerdictKind::ok && !why(*worst).empty()) text += ": " + why(*worst);
  const std::string counted = gpus.size() == 1 ? "" : " (" + std::to_string(gpus.size()) + " devices)";
  return text + ", " + name_of(*worst) + counted;
}

std::string to_json(const BenchReport& report) {
  std::string text = write_record(report);
  if (text.size() <= k_report_max) return text;
  BenchReport shorter = report;
  for (GpuBench& gpu : shorter.gpus) gpu.transcripts.clear();
  return write_record(shorter);
}

Result<BenchReport> parse_bench_report(std::string_view text) {
  return read_record<BenchReport>(text, "the report of a benchmark", k_own_rules, Code::state_unreadable);
}

std::map<std::string, double, std::less<>> figures_of(const BenchReport& report) {
  std::map<std::string, double, std::less<>> figures;
  double worst_fall = 0;
  for (const GpuBench& gpu : report.gpus) {
    const auto figure = [&](const char* name) {
      const auto found = gpu.figures.find(name);
      return found == gpu.figures.end() ? 0.0 : found->second;
    };
    if (figure("gemm16_tflops") > 0) figures["total_flops"] += figure("gemm16_tflops");
    const auto least = [&](const char* name, double value) {
      if (value > 0) figures[name] = figures.contains(name) ? std::min(figures[name], value) : value;
    };
    least("gpu_mem_bw", figure("memory_read_gbs"));
    least("pcie_bw", figure("h2d_gbs"));
    for (const auto& [name, trend] : gpu.trends) worst_fall = std::max(worst_fall, sched::fall_of(trend));
  }
  if (const auto disk = report.host.find("disk_write_mbs"); disk != report.host.end())
    figures["disk_bw"] = disk->second / 1000;
  figures["verified"] = report.verdict() == sched::VerdictKind::ok ? 1 : 0;
  figures["verdict"] = sched::verdict_figure(report.verdict());
  figures["bench_drift"] = worst_fall;
  return figures;
}

namespace {
constexpr double k_ssd_mbs = 350, k_nvme_mbs = 1000;  // no spinning disk reads as fast, no SATA disk as fast as that

// Returns the file system that the benchmark measured: the one with the agent's home.
Disk* home_disk(Inventory& inventory) {
  Disk* found = nullptr;
  for (Disk& disk : inventory.disks) {
    const bool above = disk.mount == "/" || inventory.facts.home_path == disk.mount ||
                       inventory.facts.home_path.starts_with(disk.mount + "/");
    if (above && (found == nullptr || disk.mount.size() > found->mount.size())) found = &disk;
  }
  return found;
}

// A hypervisor may call an NVMe disk anything, so the measured speed counts.
bool is_faster_kind(Disk& disk, const BenchReport& report) {
  if (disk.kind != DiskKind::unknown && disk.kind != DiskKind::hdd) return false;
  const auto rate = report.host.find("disk_read_mbs");
  if (rate == report.host.end() || rate->second < k_ssd_mbs) return false;
  disk.kind = rate->second < k_nvme_mbs ? DiskKind::ssd : DiskKind::nvme;
  return true;
}
}  // namespace

Measured fill_measured(Inventory& inventory, const BenchReport& report) {
  Measured measured;
  if (Disk* disk = home_disk(inventory); disk != nullptr && is_faster_kind(*disk, report)) measured[""] = {"disk.kind"};
  for (Gpu& gpu : inventory.gpus)
    for (const GpuBench& bench : report.gpus) {
      if (gpu.uuid.empty() || bench.gpu.uuid != gpu.uuid || bench.verdict.kind == sched::VerdictKind::mismatch)
        continue;
      const auto fill = [&](std::optional<std::uint32_t>& value, const char* name) {
        const auto found = bench.figures.find(name);
        if (value || found == bench.figures.end()) return;
        value = static_cast<std::uint32_t>(std::clamp(found->second, 0.0, 4294967295.0));
        measured[gpu.uuid].emplace_back(name);
        std::erase_if(gpu.gaps, [&](const Gap& gap) { return gap.attribute == name; });
      };
      fill(gpu.units, "units");
      fill(gpu.memory_bus_bits, "memory_bus_bits");
    }
  return measured;
}

Result<std::optional<BenchReport>> load_bench_report(registry::HostRecords& registry, const HostName& name) {
  TRY_ASSIGN(const auto stored, registry.host_report(name, std::string(k_kind)));
  if (!stored) return std::optional<BenchReport>{};
  Result<BenchReport> report = parse_bench_report(stored->body);
  return report ? std::optional(*std::move(report)) : std::nullopt;
}

Result<void> save_bench_report(registry::HostRecords& registry, const HostName& name, const BenchReport& report,
                               const std::optional<BenchReport>& before) {
  TRY(registry.save_host_report({name, std::string(k_kind), report.at, to_json(report)}));
  std::map<std::string, std::optional<double>> figures;
  if (before)
    for (const auto& [what, value] : figures_of(*before)) figures[what] = std::nullopt;  // what it no longer shows
  for (const auto& [what, value] : figures_of(report)) figures[what] = value;
  TRY(registry.save_figures(name, figures));
  if (before && before->summary() == report.summary()) return {};
  return registry.add_host_event({0, name, report.at, std::string(k_kind), report.summary()});
}

Result<void> apply_bench(registry::HostRecords& registry, std::vector<sched::HostFacts>& hosts) {
  TRY_ASSIGN(const auto reports, registry.host_reports(std::string(k_kind)));
  for (const registry::HostReport& stored : reports) {
    // Most reports are fine, and reading them completely would cost more than the rest of placing.
    if (stored.body.find("\"mismatch\"") == std::string::npos && stored.body.find("\"unverified\"") == std::string::npos)
      continue;
    const Result<BenchReport> report = parse_bench_report(stored.body);
    if (!report) continue;
    for (sched::HostFacts& host : hosts)
      if (host.name == stored.provider) host.mismatch = report->mismatch(), host.unverified_gpus = report->unverified();
  }
  return {};
}

}  // namespace gridctl::control
