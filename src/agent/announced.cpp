// SPDX-License-Identifier: Apache-2.0
#include "agent/announced.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_scheduled_max = 4096;  // bytes
constexpr std::array<std::string_view, 4> k_downs{"poweroff", "reboot", "halt", "kexec"};  // "dry-..." only rehearse
}  // namespace

std::optional<WallTime> parse_scheduled_shutdown(std::string_view text) {
  std::optional<std::int64_t> microseconds;
  bool goes_down = false;
  for (const std::string& line : split_lines(text)) {
    const std::size_t cut = line.find('=');
    if (cut == std::string::npos) continue;
    const std::string_view key = std::string_view(line).substr(0, cut), value = trim(std::string_view(line).substr(cut + 1));
    if (is_one_of(key, {"USEC"})) microseconds = parse_number<std::int64_t>(value);
    if (is_one_of(key, {"MODE"})) goes_down = std::ranges::find(k_downs, value) != k_downs.end();
  }
  if (!goes_down || !microseconds || *microseconds <= 0) return std::nullopt;
  return WallTime{*microseconds / 1000};
}

std::optional<WallTime> announced_shutdown(const os::Path& file) {
  const auto text = os::read_file(file, k_scheduled_max);
  return text ? parse_scheduled_shutdown(*text) : std::nullopt;
}

}  // namespace gridctl::agent
