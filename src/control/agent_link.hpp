// SPDX-License-Identifier: Apache-2.0
// Frames over an SSH channel: blocking for worker threads, event-driven for the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "os/clock.hpp"
#include "os/loop.hpp"
#include "ssh/channel.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// A connected agent after the handshake. Nothing that the agent sent after its hello is lost: `decoder` has it.
struct AgentSession {
  std::unique_ptr<ssh::Channel> channel;
  wire::Decoder decoder{true};
  wire::AgentHello hello;
};

class BlockingLink : public wire::Link {
 public:
  BlockingLink(std::unique_ptr<ssh::Channel> channel, wire::Decoder decoder, os::Clock& clock);
  Result<void> send(const wire::Frame& frame, BootTime deadline) override;
  Result<wire::Frame> receive(BootTime deadline) override;

  // Raw bytes, for what is said before frames begin. 0 = the other side closed.
  [[nodiscard]] Result<std::size_t> receive_bytes(std::span<std::byte> into, BootTime deadline);
  [[nodiscard]] Result<void> send_bytes(ByteView bytes, BootTime deadline);
  [[nodiscard]] ssh::Channel& channel() { return *channel_; }
  [[nodiscard]] AgentSession release(wire::AgentHello hello) &&;

 private:
  [[nodiscard]] Result<void> wait(bool output_pending, BootTime deadline);
  [[nodiscard]] Error closed() const;

  std::unique_ptr<ssh::Channel> channel_;
  wire::Decoder decoder_;
  os::Clock& clock_;
};

// Loop thread only. The callbacks are set by the owner before the loop turns; on_closed comes at most once, and nothing
// after it. Not to be destroyed from inside its own callbacks.
class LoopLink {
 public:
  LoopLink(os::Loop& loop, os::Clock& clock, AgentSession session);
  ~LoopLink();
  LoopLink(const LoopLink&) = delete;
  LoopLink& operator=(const LoopLink&) = delete;

  std::function<void(const wire::Frame&)> on_frame;
  std::function<void(const Error&)> on_closed;

  // Queued; a peer that takes nothing while 4 MiB wait is cut off.
  void send(const wire::Frame& frame);

 private:
  void pump();
  bool pump_output();
  bool pump_input();
  void fail(Error error);
  void watch();
  void again();

  os::Loop& loop_;
  std::unique_ptr<ssh::Channel> channel_;
  wire::Decoder decoder_;
  std::string output_;
  std::size_t sent_ = 0;
  std::vector<ssh::Watched> watched_;
  std::vector<os::Loop::Watch> watches_;
  os::Loop::Timer keepalive_, soon_;
  bool failed_ = false;
};

}  // namespace gridctl::control
