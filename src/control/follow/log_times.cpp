// SPDX-License-Identifier: Apache-2.0
#include "control/follow/log_times.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"

namespace gridctl::control {

namespace {
constexpr std::int64_t k_apart_ms = 1000;
constexpr std::uint64_t k_times_bytes_max = 32u << 20;  // of a job that prints each second for two weeks; then none are added

os::Path times_path(const os::Path& log) { return log.string() + ".times"; }
}  // namespace

void note_log_time(const os::Path& log, std::uint64_t position, WallTime now) {
  const os::Path path = times_path(log);
  const auto status = os::status_of(path);
  if (!status) return;
  if (*status && ((*status)->size >= k_times_bytes_max || now.ms - (*status)->mtime_ns / 1'000'000 < k_apart_ms)) return;
  const auto fd = os::open_file(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (!fd) return;
  (void)os::write_all(fd->get(), as_bytes(std::to_string(position) + " " + std::to_string(now.ms) + "\n"));
}

LogTimes LogTimes::read(const os::Path& log) {
  LogTimes times;
  if (!os::exists(times_path(log))) return times;
  const Result<std::string> text = os::read_file(times_path(log), 2 * k_times_bytes_max);
  if (!text) return times;
  for (const std::string& line : split_lines(*text)) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const auto position = parse_number<std::uint64_t>(line.substr(0, space));
    const auto ms = parse_number<std::int64_t>(line.substr(space + 1));
    if (!position || !ms || (!times.marks_.empty() && *position < times.marks_.back().position)) continue;
    times.marks_.push_back({*position, {*ms}});
  }
  return times;
}

std::optional<WallTime> LogTimes::at(std::uint64_t position) const {
  const auto after = std::ranges::upper_bound(marks_, position, {}, &Mark::position);
  return after == marks_.begin() ? std::nullopt : std::optional{std::prev(after)->at};
}

}  // namespace gridctl::control
