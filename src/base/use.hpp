// SPDX-License-Identifier: Apache-2.0
// Describes how much of a host a running attempt uses, as the host measured it. Figures for people: no decision may
// depend on one alone, because a host that does not measure it, or an earlier agent, omits it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gridctl {

inline constexpr std::size_t k_use_gpus_max = 64;  // GPUs of one attempt on one host

struct GpuUse {
  std::optional<int> percent{};  // of the last moments in which a kernel ran
  std::optional<std::uint64_t> memory_bytes{}, memory_total{};
  std::optional<int> temperature_c{};
  bool operator==(const GpuUse&) const = default;
};

struct Use {
  std::int64_t age_ms = 0;      // since it was measured
  std::optional<double> cpus{};  // processors busy, on average since the measurement before
  std::uint64_t memory_bytes = 0;  // shared pages counted once; 0: not known
  std::vector<GpuUse> gpus{};    // in the order in which the attempt was given them; empty: not measured
  bool operator==(const Use&) const = default;
};

// Returns the mean of the GPUs that reported; nullopt: none did.
[[nodiscard]] std::optional<int> gpu_percent(const Use& use);

}  // namespace gridctl
