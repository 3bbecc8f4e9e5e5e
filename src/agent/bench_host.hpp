// SPDX-License-Identifier: Apache-2.0
// Measures how fast the host itself is: processors, memory, disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <string>

#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Takes about five times `part`. Names: cpu_gflops (multiply-adds in 64 bits on one processor), cpu_all_gflops (on all
// that we may use), memory_copy_gbs (all of them, read and write counted), disk_write_mbs (until it is durable),
// disk_read_mbs (past the page cache), disk_sync_ms (one small durable write). A value that cannot be measured is left
// out. `folder` is on the disk of the jobs' data; a file of at most 256 MiB is written there and removed.
struct HostShare {
  std::size_t processors = 0;          // at most; 0: all
  std::uint64_t disk_bytes = UINT64_MAX;  // free for the test, at most
};
// `ended`: becomes true when somebody ends the test; what was measured until then is worth nothing.
[[nodiscard]] std::map<std::string, double> bench_host(const os::Path& folder, Duration part, const HostShare& share, const std::atomic<bool>& ended,
                                                       os::Clock& clock);

}  // namespace gridctl::agent
