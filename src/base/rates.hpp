// SPDX-License-Identifier: Apache-2.0
// Describes what the owner of a lent machine asks for its use, and computes the charge: whole millionths of a US
// dollar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl {

inline constexpr std::int64_t k_micro = 1'000'000;            // of one dollar
inline constexpr std::int64_t k_rate_max = 1'000 * k_micro;   // of each rate
inline constexpr std::uint64_t k_metered_ms_max = 1'000'000'000'000'000;
inline constexpr std::uint64_t k_metered_bytes_max = 1'000'000'000'000'000'000;

struct Rates {
  std::int64_t gpu_hour = 0, cpu_hour = 0;
  std::int64_t gigabyte = 0;  // of traffic, both ways: 10^9 bytes
  std::int64_t minimum = 0;   // of an attempt that has run
  bool operator==(const Rates&) const = default;
};

struct MeteredUse {
  std::uint64_t gpu_ms = 0, cpu_ms = 0;  // times the GPUs, and the processors, that the attempt had
  std::uint64_t bytes_up = 0, bytes_down = 0;
  [[nodiscard]] bool ran() const { return gpu_ms > 0 || cpu_ms > 0; }
  bool operator==(const MeteredUse&) const = default;
};

// REQUIRES: each number within its limit above. Fractions of a millionth are dropped.
[[nodiscard]] std::int64_t charge(const Rates& rates, const MeteredUse& use);
// Returns the price of an hour of the complete machine, without traffic.
[[nodiscard]] std::int64_t hourly(const Rates& rates, std::uint64_t gpus, std::uint64_t cpus);

// Reads "gpu=0.25,cpu=0.01,traffic=0.05,minimum=0.02", all of them or some, or "free". Errors: usage.
[[nodiscard]] Result<Rates> parse_rates(std::string_view text);
// Returns text such as "gpu=0.25,cpu=0.01", or "free".
[[nodiscard]] std::string rates_text(const Rates& rates);
// Returns text such as "1.25", "0.000125"; at least two digits after the point.
[[nodiscard]] std::string usd_text(std::int64_t micro);

}  // namespace gridctl
