// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/use_record.hpp"

namespace gridctl {

namespace {
constexpr std::int64_t k_use_age_ms_max = 1ll << 42;
constexpr double k_busy_cpus_max = 1 << 20;
constexpr int k_percent_max = 100, k_hottest = 999;
}  // namespace

// Members are sorted by name, because they are part of the heartbeat's replies.
template <class R>
void fields(R& r, Of<R, GpuUse>& m) {
  r.maybe("memory_bytes", m.memory_bytes).maybe("memory_total", m.memory_total);
  r.maybe("percent", m.percent, 0, INT32_MAX).maybe("temperature_c", m.temperature_c, 0, INT32_MAX);
  if constexpr (R::reads) {
    if (m.percent) m.percent = std::min(*m.percent, k_percent_max);
    if (m.temperature_c) m.temperature_c = std::min(*m.temperature_c, k_hottest);
  }
}

template <class R>
void fields(R& r, Of<R, Use>& m) {
  r.unless("age_ms", m.age_ms, 0, 0, k_use_age_ms_max).maybe("cpus", m.cpus, 0, k_busy_cpus_max);
  r.unless("gpus", m.gpus, {}, k_use_gpus_max).unless("memory_bytes", m.memory_bytes, 0);
}

GRIDCTL_FIELDS(GpuUse)
GRIDCTL_FIELDS(Use)

std::optional<int> gpu_percent(const Use& use) {
  int sum = 0, told = 0;
  for (const GpuUse& gpu : use.gpus)
    if (gpu.percent) sum += *gpu.percent, ++told;
  return told == 0 ? std::nullopt : std::optional{(sum + told / 2) / told};
}

}  // namespace gridctl
