// SPDX-License-Identifier: Apache-2.0
// Keeps, in a file beside a local log, when its bytes arrived here: a line "POSITION MILLISECONDS" for at most one
// append a second. A line of the log gets the time at which it reached this machine, later than the program printed it:
// by a heartbeat, or by as long as the host was unreachable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Notes that the bytes after `position` of the log arrived at `now`. Best effort: a log without times is still a log.
void note_log_time(const os::Path& log, std::uint64_t position, WallTime now);

class LogTimes {
 public:
  [[nodiscard]] static LogTimes read(const os::Path& log);  // empty when there are none: a log of an earlier gridctl
  [[nodiscard]] std::optional<WallTime> at(std::uint64_t position) const;

 private:
  struct Mark {
    std::uint64_t position = 0;
    WallTime at;
  };
  std::vector<Mark> marks_;  // ascending
};

}  // namespace gridctl::control
