// SPDX-License-Identifier: Apache-2.0
// The report as a value and as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "control/measure/bench.hpp"

namespace gridctl::control {
namespace {

using nlohmann::json;

constexpr std::string_view k_kind = "bench";      // of the host report and the host's events
constexpr std::size_t k_report_max = 900 * 1024;  // bytes: below what the registry takes

json verdict_json(const sched::GpuVerdict& verdict) {
  json findings = json::array();
  for (const sched::GpuFinding& finding : verdict.findings)
    findings.push_back(
        {{"verdict", sched::verdict_name(finding.kind)}, {"what", finding.what}, {"text", finding.text}});
  return {{"verdict", sched::verdict_name(verdict.kind)},
          {"cause", verdict.cause},
          {"findings", std::move(findings)},
          {"notes", verdict.notes}};
}

json transcript_json(const BenchTranscript& one) {
  return {{"test", one.test},
          {"at", format_rfc3339(one.at)},
          {"seed", one.seed},
          {"after", one.after},
          {"sizes", one.sizes},
          {"answer_sha256", one.answer_sha256},
          {"parts", one.parts},
          {"words", one.words},
          {"seconds_here", one.seconds_here},
          {"seconds_there", one.seconds_there},
          {"outcome", one.outcome}};
}

json gpu_json(const GpuBench& bench, bool with_transcripts) {
  json trends = json::object();
  for (const auto& [name, trend] : bench.trends) trends[name] = {{"last", trend.last}, {"baseline", trend.baseline}};
  json transcripts = json::array();
  if (with_transcripts)
    for (const BenchTranscript& one : bench.transcripts) transcripts.push_back(transcript_json(one));
  json value = verdict_json(bench.verdict);
  value.update({{"uuid", bench.gpu.uuid},
                {"vendor", vendor_name(bench.gpu.vendor)},
                {"name", bench.gpu.name},
                {"model", bench.gpu.model},
                {"memory_bytes", bench.gpu.memory_bytes},
                {"backend", bench.backend},
                {"figures", bench.figures},
                {"trends", std::move(trends)},
                {"transcripts", std::move(transcripts)}});
  return value;
}

std::string text_of(const BenchReport& report, bool with_transcripts) {
  json gpus = json::array();
  for (const GpuBench& gpu : report.gpus) gpus.push_back(gpu_json(gpu, with_transcripts));
  const json value{{"at", format_rfc3339(report.at)},
                   {"quick", report.quick},
                   {"verdict", sched::verdict_name(report.verdict())},
                   {"round_trip_ms", report.round_trip_ms},
                   {"host", report.host},
                   {"gpus", std::move(gpus)},
                   {"problems", report.problems}};
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

sched::GpuVerdict read_verdict(const json& value) {
  sched::GpuVerdict verdict;
  const auto kind_of = [](const json& where) {
    return sched::parse_verdict(where.at("verdict").get<std::string>()).value_or(sched::VerdictKind::suspect);
  };
  verdict.kind = kind_of(value);
  verdict.cause = value.at("cause").get<std::string>();
  for (const json& finding : value.at("findings"))
    verdict.findings.push_back(
        {kind_of(finding), finding.at("what").get<std::string>(), finding.at("text").get<std::string>()});
  verdict.notes = value.at("notes").get<std::vector<std::string>>();
  return verdict;
}

WallTime read_time(const json& value) {
  const Result<WallTime> time = parse_rfc3339(value.get<std::string>());
  return time ? *time : WallTime{};
}

BenchTranscript read_transcript(const json& value) {
  BenchTranscript one;
  one.test = value.at("test").get<std::string>();
  one.at = read_time(value.at("at"));
  one.seed = value.at("seed").get<std::uint64_t>();
  one.after = value.at("after").get<std::uint64_t>();
  one.sizes = value.at("sizes").get<std::map<std::string, double>>();
  one.answer_sha256 = value.at("answer_sha256").get<std::string>();
  one.parts = value.at("parts").get<std::vector<std::uint32_t>>();
  one.words = value.at("words").get<std::vector<std::uint32_t>>();
  one.seconds_here = value.at("seconds_here").get<double>();
  one.seconds_there = value.at("seconds_there").get<double>();
  one.outcome = value.at("outcome").get<std::string>();
  return one;
}

GpuBench read_gpu(const json& value) {
  GpuBench bench;
  bench.verdict = read_verdict(value);
  bench.gpu.uuid = value.at("uuid").get<std::string>();
  if (const Result<Vendor> vendor = parse_vendor(value.at("vendor").get<std::string>())) bench.gpu.vendor = *vendor;
  bench.gpu.name = value.at("name").get<std::string>();
  bench.gpu.model = value.at("model").get<std::string>();
  bench.gpu.memory_bytes = value.at("memory_bytes").get<std::uint64_t>();
  bench.backend = value.at("backend").get<std::string>();
  bench.figures = value.at("figures").get<std::map<std::string, double>>();
  for (const auto& [name, trend] : value.at("trends").items())
    bench.trends[name] = {trend.at("last").get<std::vector<double>>(), trend.at("baseline").get<double>()};
  for (const json& one : value.at("transcripts")) bench.transcripts.push_back(read_transcript(one));
  return bench;
}

BenchReport read_report(const json& value) {
  BenchReport report;
  report.at = read_time(value.at("at"));
  report.quick = value.at("quick").get<bool>();
  report.round_trip_ms = value.at("round_trip_ms").get<double>();
  report.host = value.at("host").get<std::map<std::string, double>>();
  for (const json& gpu : value.at("gpus")) report.gpus.push_back(read_gpu(gpu));
  report.problems = value.at("problems").get<std::vector<std::string>>();
  return report;
}

std::string why(const GpuBench& gpu) {
  if (!gpu.verdict.cause.empty()) return gpu.verdict.cause;
  return gpu.verdict.findings.empty() ? "" : gpu.verdict.findings.front().text;
}
std::string name_of(const GpuBench& gpu) { return gpu.gpu.model.empty() ? gpu.gpu.name : gpu.gpu.model; }

}  // namespace

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
  std::string text = text_of(report, true);
  return text.size() <= k_report_max ? text : text_of(report, false);
}

Result<BenchReport> parse_bench_report(std::string_view text) {
  try {
    return read_report(json::parse(text));
  } catch (const json::exception& problem) {
    return make_error(Code::state_unreadable, std::string("cannot read a report of a benchmark: ") + problem.what());
  }
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
  figures["verdict"] = static_cast<double>(report.verdict());
  figures["bench_drift"] = worst_fall;
  return figures;
}

Measured fill_measured(Inventory& inventory, const BenchReport& report) {
  Measured measured;
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

Result<std::optional<BenchReport>> load_bench_report(registry::Registry& registry, const HostName& name) {
  TRY_ASSIGN(const auto stored, registry.host_report(name, std::string(k_kind)));
  if (!stored) return std::optional<BenchReport>{};
  Result<BenchReport> report = parse_bench_report(stored->body);
  return report ? std::optional(*std::move(report)) : std::nullopt;
}

Result<void> save_bench_report(registry::Registry& registry, const HostName& name, const BenchReport& report,
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

Result<void> apply_bench(registry::JobRecords& registry, std::vector<sched::HostFacts>& hosts) {
  TRY_ASSIGN(const auto reports, registry.host_reports(std::string(k_kind)));
  for (const registry::HostReport& stored : reports) {
    // Most are fine, and reading them whole would cost more than all the rest of placing.
    if (stored.body.find("\"mismatch\"") == std::string::npos) continue;
    const Result<BenchReport> report = parse_bench_report(stored.body);
    if (!report) continue;
    for (sched::HostFacts& host : hosts)
      if (host.name == stored.provider) host.mismatch = report->mismatch();
  }
  return {};
}

}  // namespace gridctl::control
