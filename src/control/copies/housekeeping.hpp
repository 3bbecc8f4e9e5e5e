// SPDX-License-Identifier: Apache-2.0
// Removes from the state directory what nothing needs any more, off the loop.
#pragma once

#include "control/reach/paths.hpp"
#include "os/loop.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::control {

// Removes chunks that neither a kept checkpoint nor a job's input needs. Lists what is live first; any failure to list
// or read a manifest means that nothing is removed.
[[nodiscard]] Result<store::GcReport> collect_garbage(const Paths& paths);

// Removes leftovers of killed processes: secrets of jobs that have ended or were never recorded, and files that were
// being written beside their final name. Only leftovers so old that nobody can be at work on them. Returns how many.
[[nodiscard]] Result<std::uint64_t> sweep_leftovers(const Paths& paths, WallTime now);

// Both at the daemon's start (the collection when the last one was a day ago: many daemons live for one job only), and
// then each hour.
class Housekeeping {
 public:
  Housekeeping(os::Loop& loop, Paths paths);

 private:
  os::Loop::Timer timer_;
  os::Pool pool_{1};
};

}  // namespace gridctl::control
