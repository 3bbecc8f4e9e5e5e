// SPDX-License-Identifier: Apache-2.0
// How much running jobs use of their hosts, and how loaded those are, as the daemon last heard: one small file of the
// state directory, which commands read. Losing it loses nothing but what a screen shows.
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/use.hpp"
#include "os/files.hpp"

namespace gridctl::registry {

inline constexpr std::size_t k_use_history = 30;           // measurements: five minutes
inline constexpr std::int64_t k_use_stale_ms = 60'000;     // an older figure is not shown as if it were of now

struct MemberUse {
  int rank = 0;
  HostName host;
  WallTime at;           // when it was measured
  double cpus_given = 0;  // 0: not limited
  Use use;
  std::vector<int> history;  // percent of its GPUs, else of its processors; the newest last
};

struct JobUse {
  JobId job;
  Epoch epoch;
  std::vector<MemberUse> members;  // by rank; those that were measured
};

struct HostLoad {
  HostName host;
  WallTime at;
  double load1 = 0;
  std::uint64_t disk_free_bytes = 0;
  int gpus_held = -1;  // leased by anybody; -1: not told
};

struct UseNow {
  WallTime at;  // when it was written
  std::vector<JobUse> jobs;
  std::vector<HostLoad> hosts;

  [[nodiscard]] const JobUse* of(const JobId& job) const;       // nullptr: nothing is known
  [[nodiscard]] const HostLoad* of(const HostName& host) const;
};

// The figure that a history keeps: the percentage of the member's GPUs, else of its processors.
[[nodiscard]] std::optional<int> busy_percent(const MemberUse& member);

[[nodiscard]] Result<void> write_use(const os::Path& state_directory, const UseNow& use);
// Without what is stale at `now`; empty when there is nothing to read.
[[nodiscard]] UseNow read_use(const os::Path& state_directory, WallTime now);

}  // namespace gridctl::registry
