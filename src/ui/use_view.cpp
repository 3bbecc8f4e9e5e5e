// SPDX-License-Identifier: Apache-2.0
#include "ui/use_view.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "ui/json_text.hpp"
#include "ui/width.hpp"

namespace gridctl::ui {

namespace {
constexpr std::array<std::string_view, 8> k_bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr double k_gib = 1 << 30;
constexpr std::size_t k_history_shown = 20;  // characters of a sparkline in a line or table

std::string told_parts(const std::vector<std::string>& parts) {
  std::vector<std::string> told = parts;
  std::erase(told, "");
  return join(told, "  ");
}

std::string memory_text(const Use& use) { return use.memory_bytes > 0 ? format_size(use.memory_bytes) : ""; }

std::string cpus_text(const registry::MemberUse& member) {
  if (!member.use.cpus) return "";
  const std::string busy = formatted("%.1f", *member.use.cpus);
  return member.cpus_given > 0 ? busy + " of " + formatted("%.3g", member.cpus_given) : busy;
}
}  // namespace

std::string sparkline(std::span<const int> percents, std::size_t width) {
  if (percents.size() > width) percents = percents.subspan(percents.size() - width);
  std::string line;
  for (const int percent : percents) {
    const int level = std::clamp(percent, 0, 100) * static_cast<int>(k_bars.size()) / 101;
    line += k_bars[static_cast<std::size_t>(level)];
  }
  return line;
}

std::string percent_text(std::optional<int> percent) { return percent ? std::to_string(*percent) + " %" : "-"; }

std::string gpu_memory_text(const Use& use) {
  std::uint64_t used = 0, total = 0;
  for (const GpuUse& gpu : use.gpus) used += gpu.memory_bytes.value_or(0), total += gpu.memory_total.value_or(0);
  if (total == 0) return "";
  return formatted("%.3g", static_cast<double>(used) / k_gib) + " of " + formatted("%.3g", static_cast<double>(total) / k_gib) + " GiB";
}

std::string heat_text(const Use& use) {
  int hottest = -1;
  for (const GpuUse& gpu : use.gpus) hottest = std::max(hottest, gpu.temperature_c.value_or(-1));
  return hottest < 0 ? "" : std::to_string(hottest) + " °C";
}

std::string use_text(const registry::MemberUse& member) {
  const Use& use = member.use;
  const std::string cpus = cpus_text(member), memory = memory_text(use);
  const std::string count = use.gpus.size() > 1 ? std::to_string(use.gpus.size()) + " GPUs " : "GPU ";
  return told_parts({use.gpus.empty() ? "" : count + percent_text(gpu_percent(use)), gpu_memory_text(use), heat_text(use),
                 cpus.empty() ? "" : "CPU " + cpus, memory.empty() ? "" : "memory " + memory});
}

std::vector<std::string> use_lines(const registry::JobUse& job, std::size_t columns, std::size_t most) {
  std::vector<std::string> lines;
  for (const registry::MemberUse& member : job.members) {
    if (lines.size() == most) {
      lines.push_back(truncate("  and " + std::to_string(job.members.size() - most) + " more members", columns));
      break;
    }
    const std::string who = job.members.size() > 1 ? "rank " + std::to_string(member.rank) + "  " : "";
    lines.push_back(truncate("  " + who + told_parts({sanitize(member.host.value), use_text(member), sparkline(member.history, k_history_shown)}),
                             columns));
  }
  return lines;
}

Table use_table(const registry::JobUse& job) {
  Table table({{.title = "RANK", .right = true, .width_min = 4},
               {.title = "PROVIDER", .shrinks = true},
               {.title = "GPU", .right = true},
               {.title = "GPU MEMORY", .right = true, .drop = 3},
               {.title = "HEAT", .right = true, .drop = 2},
               {.title = "CPU", .right = true},
               {.title = "MEMORY", .right = true},
               {.title = "LAST MINUTES", .drop = 1}});
  const auto or_dash = [](std::string text) { return text.empty() ? "-" : text; };
  for (const registry::MemberUse& member : job.members)
    table.add({std::to_string(member.rank), member.host.value, percent_text(gpu_percent(member.use)),
               or_dash(gpu_memory_text(member.use)), or_dash(heat_text(member.use)), or_dash(cpus_text(member)),
               or_dash(memory_text(member.use)), sparkline(member.history, k_history_shown)});
  return table;
}

std::string use_json(const registry::MemberUse& member, std::span<const std::string> uuids) {
  std::vector<std::string> gpus;
  for (std::size_t i = 0; i < member.use.gpus.size(); ++i) {
    const GpuUse& gpu = member.use.gpus[i];
    JsonObject one;
    one("uuid", i < uuids.size() ? std::optional(uuids[i]) : std::nullopt)("busy_percent", gpu.percent);
    one("memory_bytes", gpu.memory_bytes)("memory_total_bytes", gpu.memory_total)("temperature_c", gpu.temperature_c);
    gpus.push_back(one.text());
  }
  const std::uint64_t memory = member.use.memory_bytes;
  JsonObject json;
  json("measured_at", member.at)("cpus", member.use.cpus);
  json("memory_bytes", memory > 0 ? std::optional(memory) : std::nullopt).raw("gpus", "[" + join(gpus, ",") + "]");
  return json.raw("history_percent", json_list(member.history, json_value<int>)).text();
}

}  // namespace gridctl::ui
