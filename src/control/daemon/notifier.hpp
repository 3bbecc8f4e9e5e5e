// SPDX-License-Identifier: Apache-2.0
// Notifies the user: looks for new events each second on a thread of its own, and sends what they ask for. Nothing here
// runs on the loop, and one receiver that hangs delays no other. Each notification is sent at most once: a try is noted
// on disk before it begins, and one that was cut short by the end of a daemon is not repeated.
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
