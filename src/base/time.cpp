// SPDX-License-Identifier: Apache-2.0
#include "base/time.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/formatted.hpp"
#include "base/text.hpp"

namespace gridctl {

namespace {
using namespace std::chrono;
constexpr std::int64_t k_duration_max_s = std::int64_t{10} * 366 * 86400;  // ten years: beyond it a typing error

struct Unit {
  std::string_view name;
  std::int64_t ns;
};
constexpr std::array<Unit, 5> k_units{{{"ms", 1'000'000},
                                       {"s", 1'000'000'000},
                                       {"m", 60'000'000'000},
                                       {"h", 3'600'000'000'000},
                                       {"d", 86'400'000'000'000}}};

bool digits(std::string_view text, std::size_t at, std::size_t count, int& out) {
  out = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || !is_digit(text[i])) return false;
    out = out * 10 + (text[i] - '0');
  }
  return true;
}

// Parses "Z", "+02:00", "-05:30": the offset from UTC.
std::optional<minutes> zone_of(std::string_view text) {
  int h = 0, m = 0;
  if (text == "Z") return minutes{0};
  const bool signed_time = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':';
  if (!signed_time || !digits(text, 1, 2, h) || !digits(text, 4, 2, m) || h > 23 || m > 59) return std::nullopt;
  const minutes ahead = hours{h} + minutes{m};
  return text[0] == '-' ? -ahead : ahead;
}
}  // namespace

std::string format_rfc3339(WallTime time) {
  const sys_time<milliseconds> point{milliseconds{time.ms}};
  const auto day = floor<days>(point);
  const year_month_day date{day};
  const hh_mm_ss clock{point - day};
  return formatted("%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                   static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                   static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                   static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, ms = 0;
  const bool head = digits(text, 0, 4, y) && digits(text, 5, 2, mo) && digits(text, 8, 2, d) &&
                    digits(text, 11, 2, h) && digits(text, 14, 2, mi) && digits(text, 17, 2, s);
  const auto is = [&](std::size_t at, char c) { return at < text.size() && text[at] == c; };
  const bool marks = is(4, '-') && is(7, '-') && is(10, 'T') && is(13, ':') && is(16, ':');
  const bool fraction = is(19, '.') && digits(text, 20, 3, ms);
  const std::optional<minutes> zone = zone_of(text.substr(std::min<std::size_t>(text.size(), fraction ? 23 : 19)));
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)}, day{static_cast<unsigned>(d)}};
  if (!head || !marks || !zone || !date.ok() || h > 23 || mi > 59 || s > 60)
    return make_error(Code::usage, "'" + std::string(text.substr(0, 40)) + "' is not a time like 2026-01-31T12:00:00Z");
  const auto point = sys_days{date} + hours{h} + minutes{mi} + std::chrono::seconds{s} + milliseconds{ms} - *zone;
  return WallTime{duration_cast<milliseconds>(point.time_since_epoch()).count()};
}

Result<Duration> parse_duration(std::string_view text) {
  const Error bad = make_error(
      Code::usage, "'" + std::string(text.substr(0, 40)) + "' is not a duration: expected e.g. 90s, 15m, 1h30m, 2d");
  std::int64_t total = 0;
  std::size_t at = 0;
  if (text.empty()) return bad;
  while (at < text.size()) {
    std::int64_t number = 0;
    const std::size_t first = at;
    while (at < text.size() && is_digit(text[at])) {
      number = number * 10 + (text[at++] - '0');
      if (number > k_duration_max_s * 1000) return bad;
    }
    if (at == first) return bad;
    std::size_t end = at;
    while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
    const std::string_view name = text.substr(at, end - at);
    const bool bare = name.empty() && first == 0 && end == text.size();
    std::int64_t unit_ns = bare ? 1'000'000'000 : 0;
    for (const Unit& unit : k_units)
      if (unit.name == name) unit_ns = unit.ns;
    if (unit_ns == 0 || number > k_duration_max_s * 1'000'000'000 / unit_ns) return bad;
    total += number * unit_ns;
    if (total / 1'000'000'000 > k_duration_max_s) return bad;
    at = end;
  }
  return Duration{total};
}

std::string format_duration(Duration duration) {
  const bool negative = duration.count() < 0;
  const std::int64_t ns = negative ? -duration.count() : duration.count();
  const std::int64_t ms = ns / 1'000'000, s = ms / 1000;
  std::string text;
  if (s == 0) text = std::to_string(ms) + "ms";
  else if (s < 10 && ms % 1000 != 0) text = std::to_string(s) + "." + std::to_string(ms % 1000 / 100) + "s";
  else if (s < 60) text = std::to_string(s) + "s";
  else if (s < 3600) text = std::to_string(s / 60) + "m" + (s % 60 ? std::to_string(s % 60) + "s" : "");
  else if (s < 86400) text = std::to_string(s / 3600) + "h" + (s / 60 % 60 ? std::to_string(s / 60 % 60) + "m" : "");
  else text = std::to_string(s / 86400) + "d" + (s / 3600 % 24 ? std::to_string(s / 3600 % 24) + "h" : "");
  return negative ? "-" + text : text;
}

}  // namespace gridctl
