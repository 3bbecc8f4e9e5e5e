// SPDX-License-Identifier: Apache-2.0
// Notifies the user: checks for new events every second on its own thread, and sends the notifications that they ask
// for. No part of it runs on the loop, and a receiver that hangs delays no other. Each notification is sent at most
// once: an attempt is recorded on disk before it starts, and one that the daemon's end interrupted is not repeated.
#pragma once

#include <memory>

#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"

namespace gridctl::control {

class Notifier {
 public:
  Notifier(os::Loop& loop, os::Clock& clock, Paths paths);
  ~Notifier();
  [[nodiscard]] bool is_idle() const;  // nothing is to be sent, as far as events were looked at

 private:
  struct State;
  std::shared_ptr<State> state_;
  os::Loop::Timer timer_;
  os::Pool look_{1};
};

}  // namespace gridctl::control
