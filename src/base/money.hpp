// SPDX-License-Identifier: Apache-2.0
// Money as an integer number of micro-dollars: sums of many small charges stay exact.
#pragma once

#include <compare>
#include <cstdint>

namespace gridctl {

struct Usd {
  std::int64_t micros = 0;
  auto operator<=>(const Usd&) const = default;
  [[nodiscard]] double dollars() const { return static_cast<double>(micros) / 1e6; }
  static Usd from_dollars(double dollars) {
    return {static_cast<std::int64_t>(dollars * 1e6 + (dollars < 0 ? -0.5 : 0.5))};
  }
};
inline Usd operator+(Usd a, Usd b) { return {a.micros + b.micros}; }

}  // namespace gridctl
