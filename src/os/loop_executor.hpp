// SPDX-License-Identifier: Apache-2.0
// The executor of a real process: an os::Loop, and a pool of threads for each lane.
#pragma once

#include <deque>
#include <map>

#include "os/executor.hpp"
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
  struct Share {  // of one host in the lane for bulk work; loop thread only
    int under_way = 0;
    std::deque<std::function<void()>> waiting;
  };
  void begin_bulk(const std::string& host, std::function<void()> work);

  Loop& loop_;
  std::map<std::string, Share> bulk_of_;
  // Last members: their destructors wait for work that refers to those above.
  Pool login_, urgent_, bulk_;
};

}  // namespace gridctl::os
