// SPDX-License-Identifier: Apache-2.0
// A conversation of streams with an attempt or with a host's user, for the loop of a command.
#pragma once

#include <functional>
#include <memory>

#include "control/reach/agent_network.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"
#include "transfer/stream_hub.hpp"

namespace gridctl::control {

class StreamCall {
 public:
  StreamCall(os::Loop& loop, os::Clock& clock, std::unique_ptr<AgentChannel> channel);
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  [[nodiscard]] transfer::StreamHub& streams() { return hub_; }
  // The connection broke, or the host has been silent for too long. Once, after all streams were closed; it may destroy
  // this.
  std::function<void(const Error&)> on_lost;

 private:
  void lose(const Error& why);

  os::Loop& loop_;
  const std::unique_ptr<AgentChannel> channel_;
  transfer::StreamHub hub_;
  os::Loop::Timer watch_;
  bool lost_ = false;
  const std::shared_ptr<int> life_ = std::make_shared<int>();  // what posted work holds weakly
};

}  // namespace gridctl::control
