// SPDX-License-Identifier: Apache-2.0
// Implements the executor of a real process: an os::Loop, and a pool of threads for each lane, of which each host has a
// share, because a host that drips or never ends must not delay the work of others. Urgent work has its own lane.
#pragma once

#include "os/executor.hpp"
#include "os/host_pool.hpp"
#include "os/loop.hpp"

namespace gridctl::os {

class LoopExecutor : public Executor {
 public:
  explicit LoopExecutor(Loop& loop);

  [[nodiscard]] Timer after(Duration delay, std::function<void()> due) override;
  [[nodiscard]] Timer every(Duration period, std::function<void()> due) override;
  void post(std::function<void()> work) override { loop_.post(std::move(work)); }
  void run(const Lane& lane, std::function<void()> work) override;
  void pause(Duration time) override;

 private:
  Loop& loop_;
  // Keep these members last: their destructors wait for work that refers to those above.
  HostPool login_, urgent_, bulk_;
};

}  // namespace gridctl::os
