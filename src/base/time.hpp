// SPDX-License-Identifier: Apache-2.0
// Defines instants and durations. Decisions use BootTime (continues while the machine sleeps); WallTime is for display
// and stored stamps only.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl {

using Duration = std::chrono::nanoseconds;

// Holds CLOCK_BOOTTIME of one machine in one boot. Two machines' BootTimes are not comparable.
struct BootTime {
  std::int64_t ns = 0;
  auto operator<=>(const BootTime&) const = default;
};
inline BootTime operator+(BootTime t, Duration d) { return {t.ns + d.count()}; }
inline BootTime operator-(BootTime t, Duration d) { return {t.ns - d.count()}; }
inline Duration operator-(BootTime a, BootTime b) { return Duration{a.ns - b.ns}; }

// Milliseconds since 1970-01-01 UTC.
struct WallTime {
  std::int64_t ms = 0;
  auto operator<=>(const WallTime&) const = default;
};
inline WallTime operator+(WallTime t, Duration d) { return {t.ms + d / std::chrono::milliseconds{1}}; }
inline WallTime operator-(WallTime t, Duration d) { return t + -d; }
// Returns the longest duration that there is, 292 years, for instants farther apart: a user may name any.
inline Duration operator-(WallTime a, WallTime b) {
  constexpr std::int64_t k_most = Duration::max() / std::chrono::milliseconds{1};
  return std::chrono::milliseconds{std::clamp(a.ms - b.ms, -k_most, k_most)};
}

// Formats a time as "2026-11-21T12:16:25.123Z".
[[nodiscard]] std::string format_rfc3339(WallTime time);
// Fractions of a second are absent or have three digits; 'Z' or an offset such as "+02:00".
[[nodiscard]] Result<WallTime> parse_rfc3339(std::string_view text);

// Parses "90", "90s", "15m", "1h30m", "2d", "500ms"; a bare number is seconds. At most 10 years.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
// Returns the shortest form that people read: "45 s" -> "45s", "1h 5m" -> "1h5m", "320ms".
[[nodiscard]] std::string format_duration(Duration duration);
[[nodiscard]] inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace gridctl
