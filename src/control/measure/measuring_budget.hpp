// SPDX-License-Identifier: Apache-2.0
// Limits how many bytes may be moved in a day to measure a host's links. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "registry/records.hpp"

namespace gridctl::control {

inline constexpr std::uint64_t k_asked_day_bytes = 512ull << 20;  // when a person asks for measurements

// Reads the host's labels: `measure` is a size per day, or "off"; `metered` (unless "no") means off. Without them, the
// limit is a small default, and nothing over links known to be slow. `slowest`: the host's slowest link, in bits a
// second.
[[nodiscard]] std::uint64_t measuring_day_bytes(const registry::Provider& provider, std::optional<double> slowest,
                                                bool asked);
// Returns the bytes each way of an exchange that all these hosts pay for: what they have left must cover both
// directions.
[[nodiscard]] std::uint64_t exchange_bytes(std::initializer_list<std::uint64_t> left);

}  // namespace gridctl::control
