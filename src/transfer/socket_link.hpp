// SPDX-License-Identifier: Apache-2.0
// Carries frames over one socket, for an event loop.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "os/files.hpp"
#include "os/loop.hpp"
#include "wire/frame.hpp"

namespace gridctl::transfer {

class SocketLink {
 public:
  SocketLink(os::Loop& loop, os::Fd socket);
  SocketLink(const SocketLink&) = delete;
  SocketLink& operator=(const SocketLink&) = delete;

  void send(const wire::Frame& frame);  // at most 8 MiB wait; more closes the link: the peer does not read
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size() - sent_; }

  // Not called from inside send. None of them may destroy the link.
  std::function<void(const wire::Frame&)> on_frame;
  std::function<void()> on_room;               // all that was sent has left
  std::function<void(const Error&)> on_closed;  // once

 private:
  void turn(os::Interest ready);
  void read();
  void flush();
  void close(const Error& error);

  os::Fd socket_;
  wire::Decoder decoder_{false};
  std::string output_;
  std::size_t sent_ = 0;
  bool closed_ = false;
  os::Loop::Watch watch_;
  os::Loop& loop_;
};

}  // namespace gridctl::transfer
