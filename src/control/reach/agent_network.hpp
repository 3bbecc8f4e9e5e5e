// SPDX-License-Identifier: Apache-2.0
// The only way to hosts, as an interface: SSH in the daemon and in commands, links that fail by a seed in the simulator.
// Nobody outside of this room knows how a host is reached (tests/tidy holds that).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "registry/records.hpp"
#include "transfer/parallel_transfer.hpp"
#include "wire/stream.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// A connection to an agent that the loop listens to. Made on a thread, then used by the loop's thread alone.
class AgentChannel {
 public:
  virtual ~AgentChannel() = default;
  [[nodiscard]] virtual const wire::AgentHello& hello() const = 0;
  // The address by which it came about; empty where there is no such thing.
  [[nodiscard]] virtual std::string way() const { return {}; }
  // From now on frames are delivered, from the loop. `on_closed` is called once; nothing comes after it. Both may
  // destroy the channel.
  virtual void listen(std::function<void(const wire::Frame&)> on_frame,
                      std::function<void(const Error&)> on_closed) = 0;
  virtual void send(const wire::Frame& frame) = 0;  // errors come by on_closed
  [[nodiscard]] virtual std::size_t queued_bytes() const { return 0; }  // were sent, and have not left yet
  std::function<void()> on_room;                                        // all that was sent has left
};

// All of them block, and may be called on any thread.
class AgentNetwork {
 public:
  virtual ~AgentNetwork() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider& provider,
                                                                      BootTime deadline) = 0;
  // For one piece of work: requests and trees of chunks.
  [[nodiscard]] virtual Result<transfer::BulkLink> open(const registry::Provider& provider, BootTime deadline) = 0;
  // A conversation of streams (StreamCall) with an attempt there, or with the host's user. `unsupported` if the agent
  // knows no streams.
  [[nodiscard]] virtual Result<std::unique_ptr<AgentChannel>> stream(const registry::Provider& provider,
                                                                     const wire::EnterRequest& whom,
                                                                     BootTime deadline);
  // For the little that no agent can do, such as removing it: what a script for `sh` prints there. `unsupported` where
  // the host gives no shell.
  [[nodiscard]] virtual Result<std::string> run_script(const registry::Provider& provider, const std::string& script,
                                                       BootTime deadline);
  // The addresses at which this machine reaches the host itself. None where that cannot be told.
  [[nodiscard]] virtual std::vector<std::string> addresses(const registry::Provider& provider, BootTime deadline);
};

}  // namespace gridctl::control
