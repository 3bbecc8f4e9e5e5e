// SPDX-License-Identifier: Apache-2.0
// Provides the way to the port of one replica: a local socket, each connection of which becomes a stream to
// 127.0.0.1:PORT inside the replica's attempt. While there is no way, nothing listens at the socket, so that a client
// learns it at once and may try another replica. For the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "control/reach/stream_call.hpp"
#include "os/listener.hpp"

namespace gridctl::control {

// Describes where a replica runs now.
struct ReplicaPlace {
  JobId job;
  Epoch epoch;
  registry::Provider provider;
  std::uint16_t port = 0;  // on 127.0.0.1 there
};

class ReplicaWay {
 public:
  // Blocks; called on a thread of the pool.
  using Enter = std::function<Result<std::unique_ptr<AgentChannel>>(const ReplicaPlace&)>;
  ReplicaWay(os::Loop& loop, os::Clock& clock, os::Pool& pool, Enter enter, std::string socket);

  // Called when nothing answers at the replica's port: its program, or the way to it, is gone.
  std::function<void()> on_refused;
  // nullopt: the replica does not run.
  void follow(std::optional<ReplicaPlace> place);
  void tick(BootTime now);
  [[nodiscard]] bool is_open() const { return call_ != nullptr && !is_doubtful(); }
  // Opens a stream that is not a client's connection: a program inside the attempt. Only while is_open().
  std::uint32_t run(const wire::StreamOpen& request, transfer::StreamEnds ends, transfer::StreamEvents events);
  void end(std::uint32_t stream, const Error& why);
  [[nodiscard]] Epoch epoch() const { return place_ ? place_->epoch : Epoch{}; }  // that it leads to; 0: nowhere
  [[nodiscard]] const std::string& trouble() const { return trouble_; }           // why there is no way; for people

 private:
  void connect();
  void connected(Epoch epoch, Result<std::unique_ptr<AgentChannel>> channel);
  void take_in();
  void drop(const std::string& why);
  [[nodiscard]] bool is_doubtful() const;

  os::Loop& loop_;
  os::Clock& clock_;
  os::Pool& pool_;
  const Enter enter_;
  const std::string socket_;
  std::optional<ReplicaPlace> place_;
  std::unique_ptr<StreamCall> call_;
  std::optional<os::Listener> listener_;
  os::Loop::Watch accepts_;
  std::string trouble_;
  bool connecting_ = false;
  BootTime again_at_{}, judged_from_{}, ticked_{};
  Duration pause_{};
};

}  // namespace gridctl::control
