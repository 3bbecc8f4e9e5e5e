// SPDX-License-Identifier: Apache-2.0
// Where things lie in a state directory.
#pragma once

#include "base/ids.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// In the place of a rank: not what rank 0 printed, but what it told in $GRIDCTL_METRICS.
inline constexpr int k_metrics_rank = -1;

struct Paths {
  os::Path root;
  [[nodiscard]] os::Path known_hosts() const { return root / "known_hosts"; }
  [[nodiscard]] os::Path chunk_store() const { return root / "store"; }
  [[nodiscard]] os::Path store_key() const { return root / "store.key"; }
  [[nodiscard]] os::Path newest() const { return root / "newest"; }  // checkpoints that were seen; copies/newest.hpp
  // The log of rank 0 when none is named: that of a job on one host.
  [[nodiscard]] os::Path log_of(const JobId& job, AttemptNumber attempt, int rank = 0) const {
    if (rank == k_metrics_rank)
      return root / "logs" / job.value / ("attempt-" + std::to_string(attempt.value) + ".metrics");
    const std::string of_rank = rank == 0 ? "" : ".rank-" + std::to_string(rank);
    return root / "logs" / job.value / ("attempt-" + std::to_string(attempt.value) + of_rank + ".log");
  }
  [[nodiscard]] os::Path logs_of(const JobId& job) const { return root / "logs" / job.value; }
  [[nodiscard]] os::Path secrets() const { return root / "secrets"; }
  [[nodiscard]] os::Path secrets_of(const JobId& job) const { return secrets() / job.value; }  // NAME: 0600 files
  [[nodiscard]] os::Path moving() const { return root / "moving"; }  // transfers; copies/moving.hpp
  [[nodiscard]] os::Path bag_of(const JobId& job) const { return root / "bags" / job.value; }
  [[nodiscard]] os::Path daemon_lock() const { return root / "daemon.lock"; }
  [[nodiscard]] os::Path daemon_info() const { return root / "daemon.json"; }
  [[nodiscard]] os::Path daemon_log() const { return root / "daemon.log"; }
};

}  // namespace gridctl::control
