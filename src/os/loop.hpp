// SPDX-License-Identifier: Apache-2.0
// One event loop over libuv: descriptors, timers, work from other threads, signals. An instance, not a singleton.
// Everything but post() is for the loop's own thread.
#pragma once

#include <functional>
#include <memory>

#include "base/result.hpp"
#include "base/time.hpp"

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

  // Destroying a Watch or Timer (or assigning another to it) cancels it; safe inside its own callback.
  class Handle;
  using Watch = std::shared_ptr<Handle>;
  using Timer = std::shared_ptr<Handle>;

  [[nodiscard]] Watch watch(int fd, Interest interest, std::function<void(Interest ready)> ready);
  void change(const Watch& watch, Interest interest);
  [[nodiscard]] Timer after(Duration delay, std::function<void()> due);  // once
  [[nodiscard]] Timer every(Duration period, std::function<void()> due);
  [[nodiscard]] Watch on_signal(int signal, std::function<void()> received);
  void post(std::function<void()> work);  // from any thread; runs in the loop, in order
  void run();                             // until stop()
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A bounded pool for what blocks (name lookup, handshakes, hashing). Destruction waits for running work.
class Pool {
 public:
  explicit Pool(unsigned threads);
  ~Pool();
  void submit(std::function<void()> work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gridctl::os
