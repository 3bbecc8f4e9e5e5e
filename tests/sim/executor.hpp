// SPDX-License-Identifier: Apache-2.0
// The daemon's loop and threads in simulated time. Timers and posted work are events of the laptop and of this life of
// the daemon; blocking work is a fiber. Also the laptop's clock.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fiber.hpp"
#include "os/clock.hpp"
#include "os/executor.hpp"
#include "world.hpp"

namespace gridctl::sim {

class SimClock : public os::Clock {
 public:
  SimClock(World& world, int node) : world_(world), node_(node) {}
  [[nodiscard]] BootTime boot() const override { return world_.node(node_).boot(world_.now); }
  [[nodiscard]] WallTime wall() const override { return world_.node(node_).wall(world_.now); }

 private:
  World& world_;
  const int node_;
};

class SimExecutor : public os::Executor {
 public:
  // `killed`: the daemon was killed inside what ran; called when that has been left.
  SimExecutor(World& world, int laptop, std::function<void()> killed)
      : world_(world), laptop_(laptop), killed_(std::move(killed)) {}
  ~SimExecutor() override { kill(); }

  [[nodiscard]] Timer after(Duration delay, std::function<void()> due) override;
  [[nodiscard]] Timer every(Duration period, std::function<void()> due) override;
  void post(std::function<void()> work) override { event(Duration::zero(), std::move(work)); }
  void run(const os::Lane& lane, std::function<void()> work) override;
  void pause(Duration time) override;

  // An event of this laptop's daemon.
  void event(Duration delay, std::function<void()> work);
  // Runs it as such an event does.
  void guard(const std::function<void()>& work);
  // From inside a fiber: until somebody wakes it, or until then. False when the time was over.
  bool wait_until(BootTime deadline);
  [[nodiscard]] std::shared_ptr<Fiber> fiber() const { return fibers_.running(); }
  [[nodiscard]] const SimClock clock() const { return {world_, laptop_}; }
  // Files of this host have to wait: as much is under way as may be.
  [[nodiscard]] bool is_full(const std::string& host) const {
    const auto found = bulk_.find(host);
    return found != bulk_.end() && !found->second.waiting.empty();
  }
  // The process is gone: its fibers are left, its work is dropped.
  void kill();

 private:
  struct Bulk {
    int running = 0;
    std::deque<std::function<void()>> waiting;
  };
  void start(const os::Lane& lane, std::function<void()> work);
  void tick(const std::weak_ptr<void>& timer, Duration period, const std::shared_ptr<std::function<void()>>& due);

  World& world_;
  const int laptop_;
  std::function<void()> killed_;
  Fibers fibers_;
  std::vector<std::shared_ptr<Fiber>> alive_;
  std::map<std::string, Bulk> bulk_;  // by host
};

}  // namespace gridctl::sim
