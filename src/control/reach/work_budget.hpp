// SPDX-License-Identifier: Apache-2.0
// The total deadline of one item of work with a host, over all its connections. It grows with what is moved: a host
// that moves next to nothing is an error, however lively it looks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/time.hpp"
#include "os/clock.hpp"
#include "wire/frame.hpp"

namespace gridctl::control {

class WorkBudget {
 public:
  struct Limits {
    Duration free = std::chrono::minutes{2};    // without a byte moved
    std::uint64_t bytes_per_second = 4 * 1024;  // half of what a link of 64 kbit/s carries
    Duration total = std::chrono::hours{12};    // what came until then is kept: the next try goes on
  };
  WorkBudget(const os::Clock& clock, const Limits& limits) : clock_(clock), limits_(limits), began_(clock.boot()) {}

  void moved(std::uint64_t bytes) { bytes_ += bytes; }        // from any thread
  void allow(Duration more) { allowed_ns_ += more.count(); }  // for what the host has to do by itself
  void cancel() { cancelled_ = true; }  // from any thread: it is over now
  [[nodiscard]] BootTime until() const;
  [[nodiscard]] bool is_over() const { return clock_.boot() >= until(); }
  [[nodiscard]] Error over() const;  // timed_out, with what was moved in which time

 private:
  const os::Clock& clock_;
  const Limits limits_;
  const BootTime began_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::int64_t> allowed_ns_{0};
  std::atomic<bool> cancelled_{false};
};

// A link under a budget: data frames count as moved, anything else does not.
[[nodiscard]] std::unique_ptr<wire::Link> under(std::shared_ptr<WorkBudget> budget, std::unique_ptr<wire::Link> link);

}  // namespace gridctl::control
