// SPDX-License-Identifier: Apache-2.0
// When a host was last heard of over a connection other than its heartbeat's: one that sends a checkpoint is not
// silent, and an hour of sending on a thin link must not cost the attempt that made it. Written by threads of a pool,
// read by the loop.
#pragma once

#include <atomic>

#include "base/time.hpp"

namespace gridctl::control {

class LifeSign {
 public:
  void heard(BootTime at) { ns_ = at.ns; }
  [[nodiscard]] BootTime last() const { return {ns_}; }  // 0 = never

 private:
  std::atomic<std::int64_t> ns_{0};
};

}  // namespace gridctl::control
