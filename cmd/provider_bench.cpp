// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/findings.hpp"
#include "control/fleet/register_host.hpp"
#include "control/measure/bench.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace provider_bench {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{2};  // of reaching the host; the tests have deadlines of their own

constexpr Duration k_load_min = std::chrono::seconds{5}, k_load_max = std::chrono::minutes{10};

std::string number(double value, const char* unit) {
  return formatted(value >= 100 ? "%.0f %s" : "%.3g %s", value, unit);
}

struct Shown {
  const char* name;
  const char* title;
  const char* unit;
};
constexpr Shown k_host_figures[] = {
    {"cpu_gflops", "one processor", "GFLOPS"},  {"cpu_all_gflops", "all processors", "GFLOPS"},
    {"memory_copy_gbs", "memory copy", "GB/s"}, {"disk_write_mbs", "disk write", "MB/s"},
    {"disk_read_mbs", "disk read", "MB/s"},     {"disk_sync_ms", "durable write", "ms"}};
constexpr Shown k_gpu_figures[] = {{"gemm16_tflops", "16-bit matrices", "TFLOPS"},
                                   {"gemm_fp32_tflops", "fp32 matrices", "TFLOPS"},
                                   {"fp32_tflops", "fp32", "TFLOPS"},
                                   {"fp16_peak_tflops", "fp16 vectors", "TFLOPS"},
                                   {"memory_read_gbs", "memory read", "GB/s"},
                                   {"memory_copy_gbs", "memory copy", "GB/s"},
                                   {"h2d_gbs", "host to device", "GB/s"},
                                   {"d2h_gbs", "device to host", "GB/s"},
                                   {"peer_gbs", "slowest to another GPU", "GB/s"}};

void add_figures(ui::Facts& facts, std::span<const Shown> shown, const std::map<std::string, double>& figures) {
  for (const Shown& one : shown)
    if (const auto found = figures.find(one.name); found != figures.end())
      facts.add(one.title, number(found->second, one.unit));
}

void show(Context& context, const control::BenchReport& report) {
  ui::Facts host;
  host.add("verdict", report.summary());
  add_figures(host, k_host_figures, report.host);
  context.print(host.render(context.out_style));
  for (const control::GpuBench& gpu : report.gpus) {
    ui::Facts facts;
    facts.add("gpu", gpu.gpu.name + (gpu.gpu.uuid.empty() ? "" : ", " + gpu.gpu.uuid));
    facts.add("verdict", std::string(sched::verdict_name(gpu.verdict.kind)) +
                             (gpu.verdict.cause.empty() ? "" : ": " + gpu.verdict.cause));
    if (const auto bytes = gpu.figures.find("memory_hashed_bytes"); bytes != gpu.figures.end())
      facts.add("memory hashed", format_size(static_cast<std::uint64_t>(bytes->second)));
    add_figures(facts, k_gpu_figures, gpu.figures);
    for (const std::string& note : gpu.verdict.notes) facts.add("note", note);
    context.print("\n" + facts.render(context.out_style));
  }
  show_problems(context, bench_findings(report));
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<Duration> under_load, parsed.duration("under-load"));
  if (under_load && (*under_load < k_load_min || *under_load > k_load_max))
    return make_error(Code::usage, "--under-load must be from 5s to 10m");
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  // Tests apply to the GPUs that are present now.
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  TRY_ASSIGN(const control::Examined examined, control::examine(net, provider, deadline, context.clock));
  provider.inventory = examined.provider.inventory;
  control::BenchOptions options;
  options.quick = parsed.has("quick");
  options.under_load = under_load.value_or(options.under_load);
  options.gpus = parsed.values("gpu");
  options.progress = [&](const std::string& line) { context.note(sanitize(line)); };
  const control::HostAccess place{provider, &net, &context.clock};
  TRY_ASSIGN(const auto before, control::load_bench_report(registry, provider.name));
  TRY_ASSIGN(const control::BenchReport report, control::bench_host(place, options, before));
  TRY(control::save_bench_report(registry, provider.name, report, before));
  if (context.json) context.print_line(control::to_json(report));
  else show(context, report);
  if (report.mismatch().empty()) return 0;
  return make_error(Code::refused,
                    provider.name.value +
                        " does not match its declaration, so it gets no jobs: " + sanitize(report.mismatch()),
                    "gridctl provider bench " + provider.name.value);
}
}  // namespace
}  // namespace provider_bench

const Command k_provider_bench{
    .name = "provider bench",
    .summary = "measure a host and verify its GPUs",
    .examples = {
        {"Measure a host and verify its GPUs", "gridctl provider bench ada"},
        {"Half a minute per GPU instead of two", "gridctl provider bench ada --quick"},
        {"Check the cooling under sustained load", "gridctl provider bench ada --under-load 10m"},
        {"In a script", "gridctl provider bench ada --quick --json | jq -r .verdict"}},
    .description =
        "Measures the processors, memory, disk and GPUs of a host. The host needs neither root access nor containers "
        "nor a toolkit. gridctl tests GPUs through the CUDA driver or OpenCL: it fills and hashes their memory and "
        "multiplies matrices, each from a fresh random seed, and it checks and times the answers on this machine. It "
        "also times copies between GPU and host, and between each pair of GPUs of one driver while both are free. GPUs "
        "in use are left alone.\n\nThe verdict compares the results with the declared GPU model: ok, degraded (with "
        "the cause, if the host's tools reveal it; two runs must agree), suspect, or mismatch. A name that the GPU's own "
        "architecture, memory, multiprocessors or PCI device contradict is a mismatch. A host with a mismatch gets no jobs "
        "until it passes. A GPU of no known model is unverified: a job that names a model does not run on it, a job that "
        "asks for memory does. The daemon measures a borrowed host (class market or label lent) before the first job that wants its GPUs, unless the job "
        "file says 'constraints: {unmeasured: allow}'. It repeats the challenges at random times while a GPU is idle. The setting "
        "gpu.recheck is the average interval (default 12h; off disables it): gridctl config.",
    .positionals = {{"NAME", Completion::provider}},
    .options = {
        {"quick", 0, "", "shorter measurements, and no time under load"},
        {"under-load", 0, "TIME", "keep each GPU busy for this long, to see the effect of heat", "1m"},
        {"gpu", 0, "UUID", "only this GPU", "all", Completion::nothing, "", true}},
    .exit_codes = k_exits_host,
    .waits = true,
    .run = provider_bench::run};

}  // namespace gridctl::cmd
