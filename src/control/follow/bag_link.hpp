// SPDX-License-Identifier: Apache-2.0
// Keeps a separate connection to the agent of one host, which carries orders to the workers of bags there and their
// results back. One request at a time; the host may delay its answer until there is news. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "control/fleet/fleet.hpp"
#include "wire/bag.hpp"

namespace gridctl::control {

class BagLink : public std::enable_shared_from_this<BagLink> {
 public:
  using Then = std::function<void(const Result<wire::BagReply>&)>;
  struct Output {
    std::uint64_t offset = 0;  // later than asked when the host has dropped some
    std::string bytes;
  };
  using ThenOutput = std::function<void(const Result<Output>&)>;

  // `life` is notified of every answer: a host that reports results is not silent.
  BagLink(const World& world, registry::Provider provider, std::shared_ptr<LifeSign> life)
      : world_(world), provider_(std::move(provider)), life_(std::move(life)) {}

  // Opens the connection if there is none and its pause is over.
  void tick(BootTime now);
  [[nodiscard]] bool is_ready() const { return channel_ != nullptr && !then_ && !then_output_; }
  // REQUIRES: is_ready. Calls `then` once, with an error if no answer arrives in time.
  void ask(const wire::BagRequest& request, Then then);
  void ask_output(const wire::LogRequest& request, ThenOutput then);  // the same
  void close(const Error& why);

 private:
  void take_over(Result<std::unique_ptr<AgentChannel>> channel);
  void on_frame(const wire::Frame& frame);
  void on_output_frame(const wire::Frame& frame);
  void send(const std::string& payload, Duration patience);

  const World world_;
  const registry::Provider provider_;
  const std::shared_ptr<LifeSign> life_;
  std::unique_ptr<AgentChannel> channel_;
  Then then_;
  ThenOutput then_output_;
  Output output_;
  std::size_t output_max_ = 0;  // bytes that were asked for; 0: the reply is not here yet
  std::size_t output_wanted_ = 0;
  std::uint32_t stream_ = 0;
  BootTime asked_at_{}, next_try_{};
  Duration patience_{};
  bool connecting_ = false;
};

}  // namespace gridctl::control
