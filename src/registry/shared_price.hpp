// SPDX-License-Identifier: Apache-2.0
// The workers of one bag share the price of a host: at each moment it costs what the dearest of them costs there, however
// many they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::db {
class Database;
}

namespace gridctl::registry {

// One attempt of a worker, with the prices that it had.
struct WorkerRun {
  struct Change {
    std::int64_t at_ms = 0;
    double more = 0;  // USD per hour from then on
  };
  struct Stop {
    std::int64_t from_ms = 0, until_ms = 0;  // it was paused, and cost nothing
  };
  std::string host;
  std::int64_t from_ms = 0, until_ms = 0;
  bool goes_on = false;  // `until_ms` is now
  double usd_per_hour = 0;
  std::vector<Change> changes{};
  std::vector<Stop> pauses{};
};

// The amount by which these cost less together than each of them alone.
struct SharedPrice {
  double usd = 0;
  double usd_per_hour = 0;  // of those that go on
};
// Pure. Counts from `from_ms` on.
[[nodiscard]] SharedPrice shared_by(const std::vector<WorkerRun>& runs, std::int64_t from_ms);

// Reads what the workers of the bag `leader` share; nothing for any other job.
[[nodiscard]] Result<SharedPrice> shared_by_workers(db::Database& db, const JobId& leader, WallTime from, WallTime now);
// Returns the leaders of bags that have further workers with attempts that had not ended by `from`. `owner`: empty means anybody's.
[[nodiscard]] Result<std::vector<JobId>> bags_with_workers(db::Database& db, const std::string& owner, WallTime from);

}  // namespace gridctl::registry
