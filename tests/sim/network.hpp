// SPDX-License-Identifier: Apache-2.0
// The way to hosts over the world's bad links. Within a connection frames come in order and once, as TCP has it: what
// was lost holds up all that comes after it. But a host may get a request late, twice, or after the connection was
// given up here.
#pragma once

#include <map>
#include <memory>

#include "control/reach/agent_network.hpp"
#include "control/reach/host_access.hpp"
#include "control/reach/ways.hpp"
#include "executor.hpp"
#include "host.hpp"
#include "serve.hpp"

namespace gridctl::sim {

// One connection, as this side sees it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(World& world, SimExecutor& run, int laptop, int host, Host::Connection there, std::string way)
      : world_(world), run_(run), laptop_(laptop), host_(host), there_(there), way_(std::move(way)) {}
  // The request goes out; its reply is told in turn by `arrived`, and the end of the connection by `broke`.
  void ask(const wire::Frame& frame);
  void greeted();
  std::function<void(const wire::Frame&)> arrived;
  std::function<void(const Error&)> broke;
  [[nodiscard]] bool is_broken() const { return broken_; }
  [[nodiscard]] const std::string& way() const { return way_; }

 private:
  void answered(std::uint64_t number, std::uint32_t stream, const Result<Served>& reply);

  World& world_;
  SimExecutor& run_;
  const int laptop_, host_;
  const Host::Connection there_;
  const std::string way_;
  std::uint64_t asked_ = 0, told_ = 0;
  std::map<std::uint64_t, std::vector<wire::Frame>> early_;
  LastPoll last_poll_;  // as the host knows it
  bool broken_ = false;
};

class SimNetwork : public control::AgentNetwork {
 public:
  SimNetwork(World& world, SimExecutor& run, int laptop) : world_(world), run_(run), laptop_(laptop) {}
  [[nodiscard]] Result<std::unique_ptr<control::AgentChannel>> connect(const registry::Provider& provider,
                                                                       BootTime deadline) override;
  [[nodiscard]] Result<transfer::BulkLink> open(const registry::Provider& provider, BootTime deadline) override;
  // The same, whose answers are signs of life.
  [[nodiscard]] Result<transfer::BulkLink> open(const registry::Provider& provider, BootTime deadline,
                                                std::shared_ptr<control::LifeSign> life);
  // From inside a fiber: what `there` says at the host when it gets the question, over a connection of its own.
  template <class Value>
  [[nodiscard]] Result<Value> ask(int host, BootTime deadline, std::function<Result<Value>(Host&)> there, Nanos takes);
  [[nodiscard]] static int host_of(const HostName& name) { return std::stoi(name.value.substr(4)); }

 private:
  struct Greeted {
    Host::Hello hello;
    std::string way;
  };
  [[nodiscard]] Result<Greeted> greet(const registry::Provider& provider, BootTime deadline);

  World& world_;
  SimExecutor& run_;
  const int laptop_;
  control::WayMemory ways_;
};

template <class Value>
Result<Value> SimNetwork::ask(int host, BootTime deadline, std::function<Result<Value>(Host&)> there, Nanos takes) {
  struct Waiting {
    std::optional<Result<Value>> answer;
    std::weak_ptr<Fiber> fiber;
    std::uint64_t wait = 0;
  };
  auto waiting = std::make_shared<Waiting>();
  waiting->fiber = run_.fiber();
  world_.send(laptop_, host, [this, host, there = std::move(there), takes, life = world_.node(laptop_).life, waiting] {
    auto said = std::make_shared<Result<Value>>(there(*world_.hosts[static_cast<std::size_t>(host)]));
    const auto back = [this, host, life, said, waiting] {
      world_.answer(laptop_, host, life, [this, said, waiting] {
        if (waiting->answer) return;
        waiting->answer = *said;
        if (const auto fiber = waiting->fiber.lock()) run_.guard([&] { fiber->wake(waiting->wait); });
      });
    };
    if (takes > 0) world_.after(takes, world_.host_node(host), back);
    else back();
  });
  for (;;) {
    waiting->wait = run_.fiber()->next_wait();
    const bool in_time = run_.wait_until(deadline);
    if (waiting->answer) return std::move(*waiting->answer);
    if (!in_time) return make_error(Code::timed_out, "no answer in time");
  }
}

}  // namespace gridctl::sim
