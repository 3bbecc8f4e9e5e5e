// SPDX-License-Identifier: Apache-2.0
// Removes data that is no longer needed from the state directory, off the loop.
#pragma once

#include "control/reach/paths.hpp"
#include "os/loop.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::control {

// Removes chunks that neither a kept checkpoint nor a job's input needs. It lists live chunks first; if listing or
// reading a manifest fails, it removes nothing.
[[nodiscard]] Result<store::GcReport> collect_garbage(const Paths& paths);

// Removes leftovers of killed processes: secrets of jobs that have ended or were never recorded, and files that were
// being written beside their final name. Removes only leftovers old enough that no process can still be using them.
// Returns their number.
[[nodiscard]] Result<std::uint64_t> sweep_leftovers(const Paths& paths, WallTime now);

// Runs the collection and the sweep at the daemon's start and then every hour. The collection at the start runs only if
// the last one is a day old, because many daemons live for a single job.
class Housekeeping {
 public:
  Housekeeping(os::Loop& loop, Paths paths);

 private:
  os::Loop::Timer timer_;
  os::Pool pool_{1};
};

}  // namespace gridctl::control
