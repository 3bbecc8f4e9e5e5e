// SPDX-License-Identifier: Apache-2.0
// The chunks that one host has had, and its cost to us: as long as the daemon runs. For several threads.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/mutex.hpp"

namespace gridctl::control {

class HostChunks {
 public:
  // Chunks that the host has sent: that we have them tells it nothing. Some may be forgotten.
  void add(const Digest& digest);
  [[nodiscard]] bool has(const Digest& digest) const;

  // Bytes that came of what was no checkpoint in the end. They lie in the store until it is collected.
  void wasted(std::uint64_t bytes, BootTime now);
  // refused, for a day, when the host has wasted more than `bytes_max`.
  [[nodiscard]] Result<void> may_send(std::uint64_t bytes_max, BootTime now) const;

 private:
  mutable os::Mutex mutex_;
  std::unordered_set<Digest> had_ GRIDCTL_GUARDED_BY(mutex_);
  std::uint64_t wasted_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  BootTime wasted_at_ GRIDCTL_GUARDED_BY(mutex_){};
};

}  // namespace gridctl::control
