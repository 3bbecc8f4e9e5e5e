// SPDX-License-Identifier: Apache-2.0
// How many bytes may be moved in a day to measure a host's links. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "registry/records.hpp"

namespace gridctl::control {

inline constexpr std::uint64_t k_asked_day_bytes = 512ull << 20;  // when a person asks for measurements

// By the host's labels: `measure` is a size a day, or "off"; `metered` (unless "no") means off. Without them a small
// default, and nothing over links that are known to be slow. `slowest`: of its links, in bits a second.
[[nodiscard]] std::uint64_t measuring_day_bytes(const registry::Provider& provider, std::optional<double> slowest,
                                                bool asked);
// Each way, of one exchange that costs all of these hosts: what they have left must do for both directions.
[[nodiscard]] std::uint64_t exchange_bytes(std::initializer_list<std::uint64_t> left);

}  // namespace gridctl::control
