// SPDX-License-Identifier: Apache-2.0
// Runs one event loop over libuv: descriptors, timers, work from other threads, signals. It is an instance, not a
// singleton. Everything but post() is for the loop's own thread. Callbacks must not throw. Timers stand still while the
// machine sleeps (libuv counts CLOCK_MONOTONIC): code that waits for an instant compares Clock::boot() when the timer
// fires, and keeps a short periodic timer besides.
#pragma once

#include <functional>
#include <memory>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/host_pool.hpp"

namespace gridctl::os {

struct Interest {
  bool read = false, write = false;
  bool operator==(const Interest&) const = default;
};

class Loop {
 public:
  Loop();
  ~Loop();  // cancels everything
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Destroying a Watch or Timer (or assigning another to it) cancels it, even inside its own callback.
  class Handle;
  using Watch = std::shared_ptr<Handle>;
  using Timer = std::shared_ptr<Handle>;

  // Watches a descriptor, level-triggered, and makes it non-blocking. At most one watch per descriptor; drop the watch
  // before closing the descriptor. A broken descriptor is reported as ready for both, once: reading or writing then
  // returns the error. Null if the descriptor cannot be watched (a regular file: always ready).
  [[nodiscard]] Watch watch(int fd, Interest interest, std::function<void(Interest ready)> ready);
  void change(const Watch& watch, Interest interest);                     // neither = paused
  [[nodiscard]] Timer after(Duration delay, std::function<void()> due);   // once
  [[nodiscard]] Timer every(Duration period, std::function<void()> due);  // period >= 1 ms
  [[nodiscard]] Watch on_signal(int signal, std::function<void()> received);
  void post(std::function<void()> work);  // from any thread; runs in the loop, in order
  void run();                             // until stop()
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs at most so many threads for blocking work (name lookup, handshakes, hashing). Destruction waits for running
// work and drops work that has not begun. Bound your submissions by pending().
class Pool {
 public:
  explicit Pool(unsigned threads) : pool_(threads, threads) {}
  void submit(std::function<void()> work) { pool_.submit("", std::move(work)); }  // from any thread
  [[nodiscard]] std::size_t pending() const { return pool_.pending(); }           // submitted and not begun

 private:
  HostPool pool_;
};

}  // namespace gridctl::os
