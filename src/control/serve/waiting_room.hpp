// SPDX-License-Identifier: Apache-2.0
// Holds requests whose replica was lost while no other is ready: HAProxy sends them to a socket here, as to a server of
// last resort, and asks a replica again when told to. For the loop's thread.
#pragma once

#include <map>
#include <string_view>

#include "os/clock.hpp"
#include "os/listener.hpp"
#include "os/loop.hpp"

namespace gridctl::control {

class WaitingRoom {
 public:
  WaitingRoom(os::Loop& loop, os::Clock& clock, os::Listener listener);

  // Releases all requests when a replica is ready, and those that have waited too long.
  void tick(bool ready);
  [[nodiscard]] std::size_t guests() const { return guests_.size(); }

 private:
  struct Guest {
    os::Fd socket;
    os::Loop::Watch watch{};
    BootTime since{};
  };
  void take_in();
  void read(int fd);
  void leave(int fd, std::string_view answer);

  os::Loop& loop_;
  os::Clock& clock_;
  const os::Listener listener_;
  os::Loop::Watch accepts_;
  std::map<int, Guest> guests_;  // by descriptor
};

}  // namespace gridctl::control
