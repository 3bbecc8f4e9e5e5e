// SPDX-License-Identifier: Apache-2.0
// Frames over an SSH channel: one kind of link for worker threads, one for the event loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"
#include "os/mutex.hpp"
#include "ssh/channel.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// A connected agent that has answered our hello. The decoder may hold bytes that came after it.
struct AgentSession {
  std::unique_ptr<ssh::Channel> channel;
  wire::Decoder decoder{true};
  wire::AgentHello hello;
  std::string way = {};  // the address by which it was reached
};

// Reads at least a byte, 0 at the end; writes all. timed_out at the deadline.
[[nodiscard]] Result<std::size_t> read_blocking(ssh::Channel& channel, std::span<std::byte> into, BootTime deadline,
                                                os::Clock& clock);
// Until the channel may have moved on, or a quarter of a second; false at the deadline.
[[nodiscard]] Result<bool> wait_for_channel(const ssh::Channel& channel, bool output_pending, BootTime deadline,
                                            os::Clock& clock);

// For worker threads. One thread may send while another receives. While it sends it also takes in what arrives (at most
// 8 MiB), so that two sides that both send do not wait for each other for ever.
class BlockingLink : public wire::Link {
 public:
  BlockingLink(std::unique_ptr<ssh::Channel> channel, wire::Decoder decoder, os::Clock& clock)
      : channel_(std::move(channel)), decoder_(std::move(decoder)), clock_(clock) {}
  BlockingLink(AgentSession session, os::Clock& clock)
      : BlockingLink(std::move(session.channel), std::move(session.decoder), clock) {}

  Result<void> send(const wire::Frame& frame, BootTime deadline) override;
  // timed_out leaves the link usable; host_unreachable at the end of the stream; protocol_violation ends it.
  Result<wire::Frame> receive(BootTime deadline) override;
  // For what never changes of it.
  [[nodiscard]] const ssh::Channel& channel() const GRIDCTL_NO_THREAD_SAFETY_ANALYSIS { return *channel_; }
  // Gives the connection up to another owner, e.g. a LoopLink. No other thread has it any more.
  [[nodiscard]] AgentSession release(wire::AgentHello hello) && GRIDCTL_NO_THREAD_SAFETY_ANALYSIS {
    return {std::move(channel_), std::move(decoder_), std::move(hello), {}};
  }

 private:
  Result<bool> take_in() GRIDCTL_REQUIRES(mutex_);  // false when nothing more is there now
  Result<void> pause(bool output_pending, BootTime deadline);

  os::Mutex mutex_;
  std::unique_ptr<ssh::Channel> channel_ GRIDCTL_PT_GUARDED_BY(mutex_);
  wire::Decoder decoder_ GRIDCTL_GUARDED_BY(mutex_);
  os::Clock& clock_;
  bool ended_ GRIDCTL_GUARDED_BY(mutex_) = false;
};

// For the loop's thread. The callbacks may destroy the link, by way of Loop::post or at once.
class LoopLink {
 public:
  // Frames that came already are delivered from the loop, after this returns.
  LoopLink(os::Loop& loop, os::Clock& clock, AgentSession session);
  ~LoopLink();
  LoopLink(const LoopLink&) = delete;
  LoopLink& operator=(const LoopLink&) = delete;

  // Queues at most 8 MiB; more means that the host does not read, and closes the link. Errors come by on_closed, never
  // from inside send.
  void send(const wire::Frame& frame);
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size(); }
  [[nodiscard]] const wire::AgentHello& hello() const { return session_.hello; }
  [[nodiscard]] ssh::TransportKind transport() const { return session_.channel->transport(); }

  std::function<void(const wire::Frame&)> on_frame;
  std::function<void(const Error&)> on_closed;  // once; nothing comes after it
  std::function<void()> on_room;                // all that was sent has left; it must not destroy the link

 private:
  void turn();
  bool read_turn();  // false when this is destroyed or closed
  bool deliver();
  void flush();
  void follow_wants();
  void later();
  void close(const Error& error);

  os::Loop& loop_;
  os::Clock& clock_;
  AgentSession session_;
  std::string output_;
  std::map<int, std::pair<os::Interest, os::Loop::Watch>> watches_;
  os::Loop::Timer heartbeat_;
  std::shared_ptr<LoopLink*> self_;  // what posted work holds weakly
  bool posted_ = false;
  bool closed_ = false;
};

}  // namespace gridctl::control
