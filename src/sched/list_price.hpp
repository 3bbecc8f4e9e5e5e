// SPDX-License-Identifier: Apache-2.0
// What GPUs cost on demand at a hyperscaler, by its list: beside it people see what a placement saves. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "sched/catalogue.hpp"

namespace gridctl::sched {

struct ListPrice {
  std::string_view model;       // key in the catalogue
  double usd_per_gpu_hour = 0;  // of the cheapest instance that has it, divided by its GPUs
  std::string_view instance;    // "AWS p5.48xlarge (us-east-1)"
};
inline constexpr std::string_view k_list_prices_read = "2026-01";

// Of that model; else of the cheapest that has as much memory and is about as fast. nullopt: nobody lists the like.
[[nodiscard]] std::optional<ListPrice> list_price(const GpuModel& wanted);

}  // namespace gridctl::sched
