// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_use.hpp"

#include "base/text.hpp"
#include "probe/drm_cards.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

namespace {
constexpr std::size_t k_use_cells = 5;
constexpr std::uint64_t k_degrees_max = 999;

std::optional<int> small_figure(std::string_view text, std::uint64_t most) {
  const auto value = whole_number(trim(text));
  return value && *value <= most ? std::optional{static_cast<int>(*value)} : std::nullopt;
}
}  // namespace

ToolCall nvidia_use_call() {
  return {{"nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used,memory.total,temperature.gpu",
           "--format=csv,noheader,nounits"}};
}

GpuUses read_nvidia_use(const ToolAnswer& answer) {
  GpuUses uses;
  if (!answer.answered) return uses;
  for (const std::string& line : split_lines(answer.out)) {
    const std::vector<std::string> cells = split(line, ',');
    if (cells.size() != k_use_cells || uses.size() >= k_gpus_max) continue;
    const std::string uuid = available(cells[0]);
    if (!uuid.starts_with("GPU-")) continue;
    GpuUse use;
    use.percent = small_figure(cells[1], 100);
    use.memory_bytes = memory_size(cells[2], "MiB");
    use.memory_total = memory_size(cells[3], "MiB");
    use.temperature_c = small_figure(cells[4], k_degrees_max);
    uses.emplace_back(uuid, use);
  }
  return uses;
}

GpuUses kernel_gpu_use(const HostFiles& files) {
  GpuUses uses;
  for (const DrmCard& card : drm_cards(files, k_drm_amd)) {
    GpuUse use;
    use.percent = small_figure(files.read_line(card.path + "/gpu_busy_percent"), 100);
    use.memory_bytes = files.read_number(card.path + "/mem_info_vram_used");
    use.memory_total = files.read_number(card.path + "/mem_info_vram_total");
    use.temperature_c = temperature(files, card);
    if (const std::string unique = files.read_line(card.path + "/unique_id"); !unique.empty()) uses.emplace_back("GPU-" + unique, use);
    uses.emplace_back(card.pci, use);
  }
  for (const DrmCard& card : drm_cards(files, k_drm_intel)) {
    GpuUse use;
    use.temperature_c = temperature(files, card);
    if (use != GpuUse{}) uses.emplace_back(card.pci, use);
  }
  return uses;
}

}  // namespace gridctl::probe
