// SPDX-License-Identifier: Apache-2.0
// Collects the chunk store's garbage now and then, off the loop.
#pragma once

#include <memory>

#include "control/paths.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::control {

// Removes chunks that neither a kept checkpoint nor a job's input needs. Lists what is live first; any failure to list
// or read a manifest means that nothing is removed.
[[nodiscard]] Result<store::GcReport> collect_garbage(const Paths& paths, store::ChunkStore& store);

class Housekeeping {
 public:
  Housekeeping(os::Loop& loop, os::Clock& clock, Paths paths, std::shared_ptr<store::ChunkStore> store);

 private:
  os::Loop::Timer timer_;
  os::Pool pool_{1};
};

}  // namespace gridctl::control
