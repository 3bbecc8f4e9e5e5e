// SPDX-License-Identifier: Apache-2.0
// Formats times, money and states for people. Pure: "now" is an argument.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "base/inventory.hpp"
#include "base/time.hpp"
#include "job/state.hpp"
#include "ui/style.hpp"

namespace gridctl::ui {

// Returns "just now", "42s ago", "3h ago", "5d ago", "in 2m" if the clock was set back; "-" if there is none.
[[nodiscard]] std::string age(std::optional<WallTime> then, WallTime now);
// Formats the time from `from` to `to` or `now`: "3m12s".
[[nodiscard]] std::string span(std::optional<WallTime> from, std::optional<WallTime> to, WallTime now);
// Formats an instant in the reader's time zone: "12:16:25" today, "2026-11-21 12:16:25" on another day, or "-".
[[nodiscard]] std::string moment(std::optional<WallTime> time, WallTime now);
// Formats "$1.25", "$0.004"; "-" for zero if `dash`.
[[nodiscard]] std::string money(double dollars, bool dash = true);
// Returns "2x RTX 4090 24 GiB", with groups joined by ", "; "-" without any.
[[nodiscard]] std::string gpus(const Inventory& inventory);
// Returns "1 file", "3 files".
[[nodiscard]] std::string counted(std::integral auto count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}
// Formats "0.5", "4" with at most this many significant digits, and no more than necessary.
[[nodiscard]] std::string number(double value, int digits = 6);
[[nodiscard]] Paint paint_of(job::JobState state);
[[nodiscard]] Paint paint_of_liveness(std::string_view liveness);

}  // namespace gridctl::ui
