// SPDX-License-Identifier: Apache-2.0
// Records transfers of a job's files between here and its hosts that last longer than a moment, as small files in the
// state directory: the daemon writes them, and commands show them.
#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"

namespace gridctl::control {

struct Moving {
  std::string host;
  bool up = true;  // to the host
  std::uint64_t bytes = 0, of = 0;
  WallTime began, at;  // `at`: when this was written
  [[nodiscard]] double per_second() const;  // bytes, in the mean since it began
};
// "sends 312 MiB of 400 MiB to ada, 14.2 MiB/s, 6s left"
[[nodiscard]] std::string in_words(const Moving& moving);
// Returns the job's transfers that made progress within the last ten seconds.
[[nodiscard]] std::vector<Moving> moving_now(const Paths& paths, const JobId& job, WallTime now);

// Manages the file of one transfer, which exists from the transfer's second second until its end. Losing the file only
// loses a line on a terminal, so errors are ignored.
class MovingFile {
 public:
  // Writes nothing without a job.
  MovingFile(const Paths& paths, const JobId& job, const HostName& host, bool up, os::Clock& clock);
  MovingFile(const MovingFile&) = delete;
  MovingFile& operator=(const MovingFile&) = delete;
  ~MovingFile();
  void moved(std::uint64_t bytes, std::uint64_t of);  // so far, and in all

 private:
  const os::Path path_;
  os::Clock& clock_;
  Moving moving_;
  bool written_ = false;
};

}  // namespace gridctl::control
