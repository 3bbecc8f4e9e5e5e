// SPDX-License-Identifier: Apache-2.0
// Lists on-demand prices of GPUs at a hyperscaler, so that people see how much a placement saves. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "sched/catalogue/catalogue.hpp"

namespace gridctl::sched {

struct ListPrice {
  std::string_view model;       // key in the catalogue
  double usd_per_gpu_hour = 0;  // of the cheapest instance that has it, divided by its GPUs
  std::string_view instance;    // "AWS p5.48xlarge (us-east-1)"
};
inline constexpr std::string_view k_list_prices_read = "2026-01";

// Returns the price of that model, or of the cheapest with as much memory and about the same speed. nullopt: no list
// has one.
[[nodiscard]] std::optional<ListPrice> list_price(const GpuModel& wanted);

}  // namespace gridctl::sched
