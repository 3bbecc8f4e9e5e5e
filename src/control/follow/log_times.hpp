// SPDX-License-Identifier: Apache-2.0
// A file beside a local log keeps when its bytes came here: a line "POSITION MILLISECONDS" for at most one append a second.
// A line of the log has the time at which it reached this machine, which is later than the program printed it: by a
// heartbeat, or by as long as the host could not be reached.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Notes that what follows `position` of the log came at `now`. Best effort: a log without times is still a log.
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
