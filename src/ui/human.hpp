// SPDX-License-Identifier: Apache-2.0
// Times, money and states as people read them. Pure: "now" is an argument.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/inventory.hpp"
#include "base/time.hpp"
#include "job/state.hpp"
#include "ui/style.hpp"

namespace gridctl::ui {

// "just now", "42s ago", "3h ago", "5d ago", "in 2m" when the clock was set back; "-" when there is none.
[[nodiscard]] std::string age(std::optional<WallTime> then, WallTime now);
// From `from` to `to` or `now`: "3m12s".
[[nodiscard]] std::string span(std::optional<WallTime> from, std::optional<WallTime> to, WallTime now);
// In the reader's time zone: "12:16:25" today, "2026-11-21 12:16:25" on another day, or "-".
[[nodiscard]] std::string moment(std::optional<WallTime> time, WallTime now);
// "$1.25", "$0.004"; "-" for zero when `dash`.
[[nodiscard]] std::string money(double dollars, bool dash = true);
// "2x RTX 4090 24 GiB", groups joined by ", "; "-" without any.
[[nodiscard]] std::string gpus(const Inventory& inventory);
// "0.5", "4": so many significant digits, without needless ones.
[[nodiscard]] std::string number(double value, int digits = 6);
[[nodiscard]] Paint paint_of(job::JobState state);
[[nodiscard]] Paint paint_of_liveness(std::string_view liveness);

}  // namespace gridctl::ui
