// SPDX-License-Identifier: Apache-2.0
// Collects the chunk store's garbage now and then, off the loop.
#pragma once

#include "control/paths.hpp"
#include "os/loop.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::control {

// Removes chunks that neither a kept checkpoint nor a job's input needs. Lists what is live first; any failure to list
// or read a manifest means that nothing is removed.
[[nodiscard]] Result<store::GcReport> collect_garbage(const Paths& paths);

class Housekeeping {
 public:
  Housekeeping(os::Loop& loop, Paths paths);

 private:
  os::Loop::Timer timer_;
  os::Pool pool_{1};
};

}  // namespace gridctl::control
