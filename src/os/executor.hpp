// SPDX-License-Identifier: Apache-2.0
// Runs the controller's code: a loop of events, and threads for blocking work. This is an interface, so that the
// simulator runs the same code in simulated time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"

namespace gridctl::os {

// Names the threads for which blocking work waits. Work of one lane never waits for threads that another lane holds,
// and one host has at most two of each lane.
struct Lane {
  enum class Kind : std::uint8_t {
    login,   // a connection to a host is opened
    urgent,  // starting and stopping attempts
    bulk,    // checkpoints, output, cleaning up, benchmarks, inventories: may take hours
  } kind = Kind::urgent;
  std::string host = {};
};

class Executor {
 public:
  using Timer = std::shared_ptr<void>;  // destroying it, or assigning another to it, cancels it
  virtual ~Executor() = default;

  // Runs on the loop's thread.
  [[nodiscard]] virtual Timer after(Duration delay, std::function<void()> due) = 0;
  [[nodiscard]] virtual Timer every(Duration period, std::function<void()> due) = 0;
  virtual void post(std::function<void()> work) = 0;                   // from any thread; runs in the loop, in order
  virtual void run(const Lane& lane, std::function<void()> work) = 0;  // may block; from the loop's thread
  // Lets time pass, in work that may block.
  virtual void pause(Duration time) = 0;
};

}  // namespace gridctl::os
