// SPDX-License-Identifier: Apache-2.0
#include "ui/human.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "os/clock.hpp"

namespace gridctl::ui {

namespace {
std::string coarse(std::int64_t seconds) {
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 86400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

}  // namespace

std::string age(std::optional<WallTime> then, WallTime now) {
  if (!then) return "-";
  const std::int64_t seconds = (now.ms - then->ms) / 1000;
  if (seconds < 0) return "in " + coarse(-seconds);
  if (seconds < 2) return "just now";
  return coarse(seconds) + " ago";
}

std::string span(std::optional<WallTime> from, std::optional<WallTime> to, WallTime now) {
  if (!from) return "-";
  const std::int64_t ms = (to ? to->ms : now.ms) - from->ms;
  const std::int64_t whole = ms > 0 ? ms / 1000 : 0;
  return whole == 0 ? "0s" : format_duration(std::chrono::seconds{whole});
}

std::string moment(std::optional<WallTime> time, WallTime now) {
  if (!time) return "-";
  const os::LocalTime then = os::local_time(*time), today = os::local_time(now);
  const bool same_day = then.year == today.year && then.month == today.month && then.day == today.day;
  return (same_day ? "" : formatted("%04d-%02d-%02d ", then.year, then.month, then.day)) +
         formatted("%02d:%02d:%02d", then.hour, then.minute, then.second);
}

std::string money(double dollars, bool dash) {
  if (dollars == 0 && dash) return "-";
  std::array<char, 330> text{'$'};  // what the greatest number takes
  const int digits = std::fabs(dollars) < 0.095 && dollars != 0 ? 4 : 2;
  return {text.data(), std::to_chars(text.data() + 1, text.end(), dollars, std::chars_format::fixed, digits).ptr};
}

std::string gpus(const Inventory& inventory) {
  std::vector<std::pair<const Gpu*, int>> groups;
  for (const Gpu& gpu : inventory.gpus) {
    if (!groups.empty() && groups.back().first->name == gpu.name &&
        groups.back().first->memory_bytes == gpu.memory_bytes)
      ++groups.back().second;
    else groups.emplace_back(&gpu, 1);
  }
  std::string text;
  for (const auto& [gpu, count] : groups) {
    std::string name = gpu->name;
    for (const std::string_view prefix : {"NVIDIA ", "AMD ", "Intel(R) ", "GeForce "})
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + "x " + name;
    if (gpu->memory_bytes != 0)
      text += " " + number(std::round(static_cast<double>(gpu->memory_bytes) / double(1ull << 30))) + " GiB";
  }
  return text.empty() ? "-" : text;
}

std::string number(double value, int digits) { return formatted("%.*g", digits, value); }

Paint paint_of(job::JobState state) {
  switch (state) {
    case job::JobState::running:
    case job::JobState::succeeded: return Paint::green;
    case job::JobState::failed: return Paint::red;
    case job::JobState::recovering:
    case job::JobState::starting: return Paint::yellow;
    case job::JobState::pending: return Paint::blue;
    case job::JobState::cancelled: return Paint::dim;
  }
  return Paint::none;
}

Paint paint_of_liveness(std::string_view liveness) {
  if (liveness == "answering") return Paint::green;
  if (liveness == "suspect") return Paint::yellow;
  if (liveness == "unreachable" || liveness == "lost") return Paint::red;
  return Paint::dim;
}

}  // namespace gridctl::ui
