// SPDX-License-Identifier: Apache-2.0
#include "probe/health_nvidia.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "probe/tool_text.hpp"
#include "xml/document.hpp"

namespace gridctl::probe {

using wire::GpuHealth;
using wire::GpuProcess;

namespace {

std::string text_at(const xml::Element& node, std::string_view path) {
  const xml::Element* found = node.find(path);
  return found == nullptr ? std::string{} : found->text;
}

std::optional<bool> yes_or_no(std::string_view text) {
  if (text == "Yes") return true;
  if (text == "No") return false;
  return std::nullopt;
}

void add(std::optional<std::uint64_t>& sum, std::string_view text) {
  if (const auto value = whole_number(text)) sum = sum.value_or(0) + *value;
}

// Shortens "00000000:01:00.0": the driver writes eight digits of domain.
std::string short_pci(std::string_view text) {
  const std::string full = pci_address(text);
  return full.size() == 16 && full.starts_with("0000") ? full.substr(4) : full;
}

// Returns the action that the GPU needs, by newer drivers (recovery action) and older ones (reset status).
std::string recovery_of(const xml::Element& gpu) {
  const std::string word = lower(text_at(gpu, "gpu_recovery_action"));
  if (word.starts_with("drain and reset")) return "reset";
  if (word.starts_with("drain")) return "drain";
  if (word.find("reboot") != std::string::npos) return "reboot";
  if (word.find("reset") != std::string::npos) return "reset";
  if (text_at(gpu, "gpu_reset_status/reset_required") == "Yes") return "reset";
  return text_at(gpu, "gpu_reset_status/drain_and_reset_recommended") == "Yes" ? "drain" : "";
}

// Reads "clocks_event_reason_hw_slowdown", before driver 535 "clocks_throttle_reason_hw_slowdown". Idle clocks and
// clocks that a user set do not count as throttling.
void read_throttle(const xml::Element& gpu, GpuHealth& health) {
  for (const std::string_view section : {"clocks_event_reasons", "clocks_throttle_reasons"}) {
    const xml::Element* reasons = gpu.find(section);
    if (reasons == nullptr) continue;
    for (const xml::Element& reason : reasons->children) {
      const std::size_t at = reason.name.find("_reason_");
      if (at == std::string::npos || reason.text != "Active") continue;
      const std::string word = reason.name.substr(at + 8);
      if (word != "gpu_idle" && word != "applications_clocks_setting") health.throttle.push_back(word);
    }
  }
}

// Reads "dram_uncorrectable", "sram_uncorrectable_parity"… since Turing; before, each memory under single_bit and
// double_bit, with a total.
void read_errors(const xml::Element& gpu, GpuHealth& health) {
  const xml::Element* counts = gpu.find("ecc_errors/volatile");
  if (counts == nullptr) return;
  for (const xml::Element& count : counts->children) {
    if (count.name == "double_bit") add(health.ecc_uncorrected, text_at(count, "total"));
    else if (count.name == "single_bit") add(health.ecc_corrected, text_at(count, "total"));
    else if (count.name.find("_uncorrectable") != std::string::npos) add(health.ecc_uncorrected, count.text);
    else if (count.name.ends_with("_correctable")) add(health.ecc_corrected, count.text);
  }
}

void read_remaps(const xml::Element& gpu, GpuHealth& health) {
  health.remap_pending = yes_or_no(text_at(gpu, "remapped_rows/remapped_row_pending"));
  health.remap_failed = yes_or_no(text_at(gpu, "remapped_rows/remapped_row_failure"));
  // Older GPUs retire pages instead of rows.
  if (!health.remap_pending) health.remap_pending = yes_or_no(text_at(gpu, "retired_pages/pending_retirement"));
}

void read_processes(const xml::Element& gpu, GpuHealth& health) {
  const xml::Element* list = gpu.find("processes");
  if (list == nullptr || (list->children.empty() && !list->text.empty())) return;  // "N/A": this user may not see them
  health.processes.emplace();
  for (const xml::Element* info : list->all("process_info")) {
    if (health.processes->size() >= wire::k_health_processes_max) return;
    GpuProcess process;
    process.pid = static_cast<int>(std::min<std::uint64_t>(whole_number(text_at(*info, "pid")).value_or(0), 1 << 30));
    process.name = available(text_at(*info, "process_name"));
    process.memory_bytes = memory_size(text_at(*info, "used_memory"), "MiB").value_or(0);
    process.draws = text_at(*info, "type") == "G";
    health.processes->push_back(std::move(process));
  }
}

GpuHealth read_gpu(const xml::Element& gpu) {
  GpuHealth health;
  health.pci = short_pci(gpu.id);
  health.uuid = available(text_at(gpu, "uuid"));
  health.partitioned = text_at(gpu, "mig_mode/current_mig") == "Enabled";
  health.memory_total = memory_size(text_at(gpu, "fb_memory_usage/total"), "MiB");
  health.memory_used = memory_size(text_at(gpu, "fb_memory_usage/used"), "MiB");
  const std::string heat = text_at(gpu, "temperature/gpu_temp");
  if (const auto degrees = whole_number(heat.substr(0, heat.find(' '))); degrees && *degrees < 1000)
    health.temperature_c = static_cast<int>(*degrees);
  health.recovery = recovery_of(gpu);
  read_throttle(gpu, health);
  read_errors(gpu, health);
  read_remaps(gpu, health);
  read_processes(gpu, health);
  return health;
}

// Parses "Unable to determine the device handle for GPU1: 0000:0A:00.0: Unknown Error", "… for GPU 0000:01:00.0: GPU is
// lost."
void add_lost(std::string_view text, std::vector<GpuHealth>& gpus) {
  for (const std::string& line : split_lines(text)) {
    const std::size_t at = line.find("Unable to determine the device handle for ");
    if (at == std::string::npos || gpus.size() >= wire::k_health_gpus_max) continue;
    GpuHealth gpu;
    for (std::string word : split(std::string_view(line).substr(at), ' ')) {
      if (word.starts_with("GPU")) word.erase(0, 3);
      while (word.ends_with(':') || word.ends_with('.')) word.pop_back();
      if (std::string pci = short_pci(word); !pci.empty()) gpu.pci = std::move(pci);
    }
    gpu.problem = line.substr(at, wire::k_health_text_max);
    const auto known = std::ranges::find(gpus, gpu.pci, &GpuHealth::pci);
    if (known == gpus.end()) gpus.push_back(std::move(gpu));
    else known->problem = gpu.problem;
  }
}

}  // namespace

ToolCall nvidia_health_call() { return {{"nvidia-smi", "-q", "-x"}}; }

std::vector<GpuHealth> read_nvidia_health(const ToolAnswer& answer) {
  std::vector<GpuHealth> gpus;
  if (!answer.answered) return gpus;
  const xml::Element root = xml::parse_what_is_there(answer.out);
  for (const xml::Element* gpu : root.all("gpu"))
    if (gpus.size() < wire::k_health_gpus_max) gpus.push_back(read_gpu(*gpu));
  add_lost(answer.out, gpus);
  add_lost(answer.err, gpus);
  if (gpus.empty() && answer.exit_code != 0) {
    GpuHealth nameless;
    nameless.problem = complaint(answer.out, answer.err);
    if (!nameless.problem.empty()) gpus.push_back(std::move(nameless));
  }
  return gpus;
}

}  // namespace gridctl::probe
