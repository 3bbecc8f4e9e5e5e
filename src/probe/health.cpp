// SPDX-License-Identifier: Apache-2.0
#include "probe/health.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "os/random.hpp"
#include "probe/engines.hpp"
#include "probe/facts.hpp"
#include "probe/health_machine.hpp"
#include "probe/health_nvidia.hpp"
#include "probe/health_packages.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr Duration k_stuck_after = std::chrono::seconds{15};  // in the kernel: beyond any tool's own deadline
constexpr Duration k_retry_first = std::chrono::minutes{1}, k_retry_max = std::chrono::hours{1};
constexpr std::size_t k_report_bytes_max = 8u << 20;  // nvidia-smi -q -x lists every clock: 120 KiB a GPU

std::string cut(std::string text) {
  if (text.size() > wire::k_health_text_max) text.resize(wire::k_health_text_max);
  return text;
}

// Writes as a checkpoint would: a file that is synced, together with its directory.
void try_write(const os::Path& home, os::Clock& clock, wire::DiskHealth& disk) {
  const os::Path probe = home / (".health-" + os::random_id(8));
  const BootTime began = clock.boot();
  const Result<void> written = os::write_file_durably(probe, "gridctl\n");
  disk.write_ms = (clock.boot() - began).count() / 1'000'000;
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  if (!written) disk.write_problem = cut(written.error().message);
}

bool skips(const HealthOptions& options, const std::string& tool) {
  return std::ranges::find(options.skip_tools, tool) != options.skip_tools.end();
}

void add_hung(wire::HealthReport& report, const std::string& tool, bool in_kernel) {
  for (wire::HungTool& known : report.hung)
    if (known.tool == tool) {
      known.in_kernel = known.in_kernel || in_kernel;
      return;
    }
  report.hung.push_back({tool, in_kernel});
}

// Returns the verdict of an NVMe or SATA drive on itself; only root may ask.
std::string drive_verdict(const ToolAnswer& answer) {
  if (!answer.answered) return {};
  const nlohmann::json root = find_json(answer.out);
  const nlohmann::json& passed = member(member(root, "smart_status"), "passed");
  return passed.is_boolean() && !passed.get<bool>() ? "SMART: the drive reports that it is failing" : "";
}

std::vector<ToolCall> calls_of(const HealthOptions& options, const HostFiles& files) {
  std::vector<ToolCall> calls;
  if (options.gpu_tools && !skips(options, "nvidia-smi")) calls.push_back(nvidia_health_call());
  if (options.engines) {
    for (ToolCall call : {docker_call(), podman_call()})
      if (find_tool(options.toolbox, call.argv.front())) calls.push_back(std::move(call));
    const std::string source = mount_of_path(files.read("/proc/self/mountinfo").value_or(""), options.home).source;
    if (source.starts_with("/dev/") && find_tool(options.toolbox, "smartctl"))
      calls.push_back({{"smartctl", "-H", "-j", "/dev/" + whole_disk(source.substr(5))}});
  }
  if (options.packages)
    for (ToolCall& call : package_calls()) calls.push_back(std::move(call));
  return calls;
}

void take_answers(const HealthOptions& options, const std::vector<ToolAnswer>& answers, BootTime now,
                  wire::HealthReport& report) {
  for (const ToolAnswer& answer : answers) {
    if (answer.tool == "nvidia-smi") {
      if (answer.found && !answer.answered)
        add_hung(report, answer.tool, answer.problem.find("kernel") != std::string::npos);
      for (wire::GpuHealth& gpu : read_nvidia_health(answer)) report.gpus.push_back(std::move(gpu));
    } else if (answer.tool == "docker" && options.engines) {
      report.engines.push_back({EngineKind::docker, cut(read_docker(answer, "").problem)});
    } else if (answer.tool == "podman" && options.engines) {
      report.engines.push_back({EngineKind::podman, cut(read_podman(answer, "").problem)});
    } else if (answer.tool == "smartctl") {
      if (report.disk.drive_problem.empty()) report.disk.drive_problem = drive_verdict(answer);
    }
  }
  if (options.gpu_tools) report.gpus_at = now;
}

}  // namespace

bool may_try(const HungNote& note, BootTime now) {
  if (note.times <= 0) return true;
  const Duration pause = std::min<Duration>(k_retry_max, k_retry_first * (1 << std::min(note.times - 1, 10)));
  return now - note.last >= pause;
}

wire::HealthReport take_health(os::Clock& clock, const HealthOptions& options) {
  const HostFiles files(options.root);
  wire::HealthReport report;
  report.boot_id = files.read_line("/proc/sys/kernel/random/boot_id");
  HealthOptions how = options;
  // Skips a tool that hangs in the kernel, even if another user started it: another process would hang beside it.
  for (const std::string& tool : stuck_tools(files, k_stuck_after)) {
    add_hung(report, tool, true);
    how.skip_tools.push_back(tool);
  }
  for (const std::string& tool : options.skip_tools) add_hung(report, tool, false);
  // Takes the time before the tools run, because events during their run may have been missed.
  report.taken_at = clock.boot();
  report.wall_ms = clock.wall().ms;
  Toolbox toolbox = how.toolbox;
  toolbox.output_max = std::max(toolbox.output_max, k_report_bytes_max);
  const std::vector<ToolAnswer> answers = ask_tools(toolbox, calls_of(how, files));

  read_load(files, report);
  read_disk_health(files, how.home, report.disk);
  try_write(how.home, clock, report.disk);
  for (wire::GpuHealth& gpu : amd_health(files)) report.gpus.push_back(std::move(gpu));
  for (wire::GpuHealth& gpu : intel_health(files)) report.gpus.push_back(std::move(gpu));
  take_answers(how, answers, report.taken_at, report);
  if (how.packages) report.packages = read_packages(files, answers);
  report.log_gap = cut(how.log.problem);
  if (how.log.problem.empty()) report.events = read_kernel_log(how.log.text, how.log.form, how.log.now_us);
  return report;
}

}  // namespace gridctl::probe
